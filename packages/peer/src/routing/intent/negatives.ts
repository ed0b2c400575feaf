import type { CapabilityEntry } from '@hermes-peer/protocol'
import type { Tokenizer } from './tokens.ts'

/** One thing that a capability says it does not do. */
export interface Negative {
  /** As it was written, for the explanation. */
  readonly text: string
  /** A wish that speaks of these is what it does not do. */
  readonly words: readonly string[]
  /** It does nothing but this ("does not handle non-log text"): a wish that speaks of none of these is not for it. */
  readonly only: readonly string[]
}

/** A description parted into what it says that it does, and what it says that it does not. */
export interface Described {
  readonly positive: string
  readonly negatives: readonly Negative[]
}

const SENTENCE = /(?<=[.!?;。！？；\n])/u
/** Begins what is not done, up to the end of the sentence. */
const NEGATED = new RegExp(
  [
    /\b(?:do(?:es)?|did|can|could|will|would|must|should)\s+not\b|\b[a-z]+n['’]t\b/,
    /\b(?:cannot|never|without|except(?:\s+for)?|excluding|no|not|nor)\b/,
    /(?:不会|不能|不可|不得|不支持|不处理|不负责|不包括|不包含|不接受|不提供|不适用于|不用于|除外|并非|不是|无法|没有|禁止|拒绝|不|勿)/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'iu',
)
/** Begins what alone is done: what is not this, is not done. */
const NOTHING_BUT =
  /\bnon[-\s]?(?<english>\p{L}+)|\b(?:anything|nothing|texts?|data|files?|documents?|things?)\s+(?:but|other\s+than|except(?:\s+for)?|besides)\s+(?<but>[\p{L}\s]+)|非(?<chinese>\p{Script=Han}{1,8})|除(?:了)?(?<except>\p{Script=Han}{1,6}?)(?:以外|之外|外)/iu
const VERB = /(?:处理|支持|负责|提供|接受|包括|知道)/gu
const LIST = /[,，、;；/]|\b(?:or|and|nor)\b|(?:以及|或者|或|和|与|及)/iu
/** Verbs that any capability may say of anything. */
const EMPTY = 'handle process support accept provide cover treat include deal work know'
/** Kinds of things that stand behind non-X: "non-log text". */
const KINDS = 'text data file document content input thing'

/** Reads what an entry says of itself, in its description and in `negative_capabilities`. */
export function createReader(tokens: Tokenizer): (entry: CapabilityEntry) => Described {
  const empty = new Set(EMPTY.split(' ').flatMap(tokens))
  const kinds = new Set(KINDS.split(' ').flatMap(tokens))

  const readNegative = (text: string): Negative[] => {
    const alone = NOTHING_BUT.exec(text)
    if (alone) {
      const { english, but, chinese, except } = alone.groups ?? {}
      const only = tokens(takeKinds(english ?? but ?? chinese ?? except ?? '')).filter((word) => !kinds.has(word))
      if (only.length > 0) return [{ text: text.trim(), words: [], only }]
    }
    return text
      .replace(NEGATED, ' ')
      .split(LIST)
      .map((part) => tokens(part.replace(VERB, ' ')).filter((word) => !empty.has(word)))
      .filter((words) => words.length > 0)
      .map((words) => ({ text: text.trim(), words: [...new Set(words)], only: [] }))
  }

  return ({ description, negative_capabilities }) => {
    const positive: string[] = []
    const negatives: Negative[] = []
    for (const sentence of description.split(SENTENCE)) {
      const at = sentence.search(NEGATED)
      positive.push(at < 0 ? sentence : sentence.slice(0, at))
      if (at >= 0) negatives.push(...readNegative(sentence.slice(at)))
    }
    for (const text of negative_capabilities) negatives.push(...readNegative(text))
    return { positive: positive.join(' '), negatives }
  }
}

/** Chinese has no spaces to part a thing from its kind by: 非日志文本. */
function takeKinds(text: string): string {
  return text.replace(/(?:文本|数据|文件|内容|输入|资料)$/u, '')
}
