/** Longest key shown in a path, in UTF-16 units; a key may be as large as the payload. */
const MAX_SHOWN_KEY = 64
/** Longest path shown. */
const MAX_SHOWN_PATH = 400

/**
 * A place in data as a JSON Pointer (RFC 6901), safe to show and to log: keys are shortened, control characters,
 * lone surrogates and marks that turn the direction of text are escaped. The root is the empty text.
 */
export function pointerTo(path: readonly (string | number)[]): string {
  let pointer = ''
  for (const step of path) {
    const text = typeof step === 'number' ? String(step) : show(step.replaceAll('~', '~0').replaceAll('/', '~1'))
    pointer += `/${text}`
    if (pointer.length > MAX_SHOWN_PATH) return `${shorten(pointer, MAX_SHOWN_PATH)}…`
  }
  return pointer
}

/** A piece of foreign text, shortened and made safe to stand in a message. */
export function show(text: string): string {
  return escapeUnsafe(text.length > MAX_SHOWN_KEY ? `${shorten(text, MAX_SHOWN_KEY)}…` : text)
}

function shorten(text: string, length: number): string {
  const last = text.charCodeAt(length - 1)
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? length - 1 : length)
}

// Control, format (which holds the marks of direction and the zero-width characters), separators of lines, surrogates.
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

function escapeUnsafe(text: string): string {
  return text.replace(UNSAFE, (char) => `\\u{${(char.codePointAt(0) as number).toString(16)}}`)
}
