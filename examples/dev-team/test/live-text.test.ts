import { describe, expect, it } from 'vitest'
import { createLiveText, type LiveText } from '../src/process/live-text.ts'

const quick = (more: object = {}): LiveText => createLiveText({ pieceLength: 10, gatherMs: 1, ...more })
const all = async (text: LiveText) => {
  const pieces: { text: string; leftOut?: number }[] = []
  for await (const piece of text.pieces()) pieces.push(piece)
  return pieces
}

describe('what a command writes, while it runs', () => {
  it('comes whole and in order, in pieces of bounded length', async () => {
    const text = quick({ keep: 100 })
    text.push(Buffer.from('one two three four five'), 'stdout')
    const pieces = all(text)
    text.push(Buffer.from(' six'), 'stdout')
    text.end()
    expect((await pieces).map((piece) => piece.text).join('')).toBe('one two three four five six')
    for (const piece of await pieces) expect(piece.text.length).toBeLessThanOrEqual(10)
  })

  it('keeps characters of any language whole: cut between bytes, between both outputs, and between pieces', async () => {
    const text = quick({ keep: 1_000 })
    const [said, failed] = ['検査 Ñandú 👩‍🔬 '.repeat(9), 'ошибка 🧪 '.repeat(9)].map((one) => Buffer.from(one)) as [
      Buffer,
      Buffer,
    ]
    for (let i = 0; i < Math.max(said.length, failed.length); i++) {
      if (i < said.length) text.push(said.subarray(i, i + 1), 'stdout')
      if (i < failed.length) text.push(failed.subarray(i, i + 1), 'stderr')
    }
    text.end()
    const pieces = (await all(text)).map((piece) => piece.text)
    expect(pieces.filter((piece) => Buffer.from(piece).toString() !== piece || piece.includes('\ufffd'))).toEqual([])
    const count = (of: string, character: string) => of.split(character).length - 1
    for (const character of ['検', 'Ñ', '🔬', 'ш', '🧪']) expect(count(pieces.join(''), character)).toBe(9)
  })

  it('of which a slow reader misses the oldest, and is told how much', async () => {
    const text = quick({ keep: 20 })
    for (let i = 0; i < 100; i++) text.push(Buffer.from(`${i}`.padStart(4)), 'stdout')
    text.end()
    const pieces = await all(text)
    expect(pieces.map((piece) => piece.text).join('')).toBe('  95  96  97  98  99')
    expect(pieces.map(({ leftOut = 0 }) => leftOut)).toEqual([380, 0])
  })

  it('is answered by signs of life when it is silent', async () => {
    const text = quick({ aliveMs: 1 })
    const pieces = text.pieces()
    expect(await pieces.next()).toEqual({ done: false, value: { text: '' } })
    text.push(Buffer.from('x'), 'stdout')
    text.end()
    expect(await pieces.next()).toEqual({ done: false, value: { text: 'x' } })
    expect(await pieces.next()).toEqual({ done: true, value: undefined })
  })

  it('may end in the middle of a character', async () => {
    const text = quick()
    text.push(Buffer.from('é').subarray(0, 1), 'stdout')
    text.end()
    expect(await all(text)).toEqual([{ text: '\ufffd' }])
  })
})
