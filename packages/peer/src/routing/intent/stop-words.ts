/** Words that say that something is wanted, or hold a sentence together, but not what it is about. Closed lists, by language. */
const ENGLISH = `a about all also am an and any are as at be been being but by can could did do does doing for from get give gives
had has have having he her here him his how i if in into is it its just let like make makes me my need needs of on or our out over
per please shall she should so some tell tells that the their them then there these they this those through to under up upon us
very want wants was we were what when where whether which while who whom whose why will with would you your
given one two other another between against several each every within next last
find finds help helps show shows look looks something someone somebody anything everything nothing`

const CHINESE = `的 了 是 在 和 与 及 或 并 也 都 就 还 把 被 给 对 向 从 到 由 以 为 于 而 且 但 用 让 使 请 请问 帮 帮我 帮忙 我 我的 我们 你 您 你们 他
她 它 他们 这 这个 这些 这份 这张 这篇 这里 那 那个 那些 哪 哪些 哪个 哪儿 哪里 什么 啥 怎么 怎样 如何 为什么 什么时候 多少 几 几个 吗 呢 吧 啊 呀 着 过 得 地 所 其 之
各 某 每 一 一个 一下 一条 一份 一张 一些 个 份 张 条 篇 只 部 件 次 位 里 里的 中 中的 里面 上 下 内 外 要 想 想要 需要 能 能否 可以 可 会 应该 有 没有 有没有 进行 关于 根据 按 按照
以及 等 等等 所有 全部`

export const STOP_WORDS: ReadonlySet<string> = new Set([...ENGLISH.split(/\s+/), ...CHINESE.split(/\s+/)])
