import { ISSUES, skipSpace, skipString } from './json-scan.ts'
import { isForbiddenKey } from './limits.ts'

interface Level {
  /** Keys seen so far; absent in a list. */
  readonly keys: Set<string> | undefined
  step: string | number
  expectsKey: boolean
}

interface Located {
  readonly path: readonly (string | number)[]
  readonly issue?: string
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/**
 * Reads text again that was found at fault, slowly, to name the place: the path of the value at `stop` (bytes), or of
 * the first key before it that is forbidden or stands twice, or string with a raw control character. Everything before `stop` must have passed the scan.
 */
export function locate(bytes: Uint8Array, stop: number): Located {
  // At most one level more than the scan lets pass.
  const levels: Level[] = []
  const path = () => levels.filter((level) => level.step !== '' || !level.expectsKey).map((level) => level.step)
  let at = skipSpace(bytes, 0)
  while (at < Math.min(stop, bytes.length)) {
    const byte = bytes[at]
    const level = levels.at(-1)
    if (byte === 0x22) {
      const after = skipString(bytes, at + 1)
      if (after < 0 || after > stop) return { path: path() }
      if (bytes.subarray(at, after).some((unit) => unit < 0x20)) return { path: path(), issue: ISSUES.string }
      if (level?.expectsKey) {
        level.step = JSON.parse(decoder.decode(bytes.subarray(at, after))) as string
        level.expectsKey = false
        if (isForbiddenKey(level.step)) return { path: path(), issue: 'this key is not allowed in data' }
        if (level.keys?.has(level.step)) return { path: path(), issue: 'this key stands twice in its object' }
        level.keys?.add(level.step)
      }
      at = after
    } else {
      if (byte === 0x7b) levels.push({ keys: new Set(), step: '', expectsKey: true })
      else if (byte === 0x5b) levels.push({ keys: undefined, step: 0, expectsKey: false })
      else if (byte === 0x7d || byte === 0x5d) levels.pop()
      else if (byte === 0x2c && level) {
        if (typeof level.step === 'number') level.step++
        else Object.assign(level, { step: '', expectsKey: true })
      }
      at++
    }
    at = skipSpace(bytes, at)
  }
  return { path: path() }
}
