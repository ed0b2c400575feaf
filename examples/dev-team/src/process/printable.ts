import { stripVTControlCharacters } from 'node:util'

/**
 * Text from a repository, a test or another agent, made safe for a terminal: control and direction-changing characters are
 * dropped, white space becomes single spaces, and it is cut at `limit` characters. Any language passes.
 */
export function printable(text: string, limit = 200): string {
  const clean = stripVTControlCharacters(text)
    .replace(/\s+/g, ' ')
    .replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '')
    .trim()
  const characters = Array.from(clean)
  return characters.length <= limit ? clean : `${characters.slice(0, limit - 1).join('')}…`
}
