import type { Document, LineCounter, Node } from 'yaml'

/** A piece of a policy with the place where it was written. */
export interface Located {
  /** Text, number, boolean or null; undefined for an object or a list. */
  readonly scalar: unknown
  readonly fields: ReadonlyMap<string, Located> | undefined
  readonly items: readonly Located[] | undefined
  /** Undefined where it was given as an object. */
  readonly line: number | undefined
}

/** Thrown while reading; the reader turns it into `INVALID_POLICY`. */
export class PolicyFault extends Error {
  readonly line: number | undefined
  readonly field: string
  constructor(why: string, { line, field }: { line?: number | undefined; field: string }) {
    super(why)
    this.line = line
    this.field = field
  }
}

/** Levels in one another that are looked into; a policy has six. */
const DEEPEST = 16

/** The same of an object that was given in code. */
export function locateObject(value: unknown, depth = 0): Located {
  if (depth > DEEPEST) throw new PolicyFault('is nested too deeply', { field: '' })
  const none = { scalar: undefined, fields: undefined, items: undefined, line: undefined }
  if (Array.isArray(value)) return { ...none, items: value.map((item) => locateObject(item, depth + 1)) }
  if (typeof value !== 'object' || value === null) return { ...none, scalar: value === undefined ? null : value }
  const fields = new Map<string, Located>()
  for (const [key, field] of Object.entries(value)) {
    if (field !== undefined) fields.set(key, locateObject(field, depth + 1))
  }
  return { ...none, fields }
}

/** Reads YAML, of which JSON is a part. Throws a `PolicyFault` with the line. */
export type LocateText = (text: string) => Located

/** The parser is loaded when a policy is there, and not before: most agents of one user on one machine have none. */
export async function loadYaml(): Promise<LocateText> {
  const yaml = await import('yaml')
  return (text) => {
    const lines = new yaml.LineCounter()
    const document = yaml.parseDocument(text, {
      lineCounter: lines,
      version: '1.2',
      merge: false,
      prettyErrors: false,
      keepSourceTokens: false,
      logLevel: 'error',
    })
    const fault = document.errors[0] ?? document.warnings[0]
    if (fault) {
      const why =
        fault.code === 'DUPLICATE_KEY' ? 'has the same name twice' : `is not YAML: ${fault.message.split('\n')[0]}`
      throw new PolicyFault(why, { line: lineOf(lines, fault.pos[0]), field: '' })
    }
    return locateNode(yaml, document as Document, lines)
  }
}

type Yaml = typeof import('yaml')

function locateNode(yaml: Yaml, document: Document, lines: LineCounter): Located {
  const locate = (node: Node | null, line: number | undefined, depth: number): Located => {
    const here = node?.range ? lineOf(lines, node.range[0]) : line
    const fault = (why: string): never => {
      throw new PolicyFault(why, { line: here, field: '' })
    }
    if (depth > DEEPEST) fault('is nested too deeply')
    const none = { scalar: undefined, fields: undefined, items: undefined, line: here }
    if (node === null) return { ...none, scalar: null }
    // Whoever reads a rule must see all of it where it stands.
    if (yaml.isAlias(node)) return fault('refers to an anchor; a policy writes out what it means')
    if (node.tag !== undefined && !node.tag.startsWith('tag:yaml.org,2002:')) return fault(`has the tag ${node.tag}`)
    if (yaml.isSeq(node)) return { ...none, items: node.items.map((item) => locate(item as Node, here, depth + 1)) }
    if (yaml.isMap(node)) {
      const fields = new Map<string, Located>()
      for (const { key, value } of node.items) {
        if (!yaml.isScalar(key) || typeof key.value !== 'string') {
          const at = yaml.isNode(key) && key.range ? lineOf(lines, key.range[0]) : here
          throw new PolicyFault(`has a name that is no text; write it in quotes`, { line: at, field: '' })
        }
        const at = key.range ? lineOf(lines, key.range[0]) : here
        fields.set(key.value, { ...locate(value as Node | null, at, depth + 1), line: at })
      }
      return { ...none, fields }
    }
    return yaml.isScalar(node) ? { ...none, scalar: node.value } : fault('is nothing that a policy has')
  }
  return locate(document.contents as Node | null, 1, 0)
}

const lineOf = (lines: LineCounter, offset: number): number => lines.linePos(offset).line
