import assert from 'node:assert/strict'
import { createRecorder, pattern, type Recorder } from './recorder.ts'

/** What a check gets: a new channel. */
export interface Ends {
  /** The opener's end; `listen()` is left to the check. */
  readonly here: Recorder
  /** The other end, listening. */
  readonly there: Recorder
  readonly until: (condition: () => boolean) => Promise<void>
}

/** `onAccept` is called with the other end before it listens. */
export type Open = (onAccept?: (recorder: Recorder) => void) => Promise<Ends>

/** Much more than any window or socket buffer: a sender who is not read must be held back before. */
const MUCH = 64 * 1024 * 1024
const PIECE = 64 * 1024

/** The promises of `Channel`, by what they promise. */
export const CHANNEL_CHECKS: Record<string, (open: Open) => Promise<void>> = {
  'tells both ends who and where the other one is': async (open) => {
    const { here, there } = await open()
    assert.equal(here.channel.direction, 'outbound')
    assert.equal(there.channel.direction, 'inbound')
    assert.notEqual(here.channel.remotePeer, there.channel.remotePeer)
    for (const { channel } of [here, there]) assert.match(channel.remoteAddress, /^\/\w+\/.+/)
  },

  'carries bytes in order, both ways at the same time': async (open) => {
    const { here, there, until } = await open()
    here.listen()
    const up = pattern(300_000, 1)
    const down = pattern(200_000, 2)
    for (let at = 0; at < up.length; at += 7_001) here.channel.send(up.subarray(at, at + 7_001))
    for (let at = 0; at < down.length; at += 911) there.channel.send(down.subarray(at, at + 911))
    await until(() => there.size >= up.length && here.size >= down.length)
    assertBytes(there.bytes(), up)
    assertBytes(here.bytes(), down)
  },

  'delivers what came before listen': async (open) => {
    const greeting = pattern(5_000, 3)
    const { here, until } = await open((there) => there.channel.send(greeting))
    here.listen()
    await until(() => here.size >= greeting.length)
    assertBytes(here.bytes(), greeting)
  },

  'delivers what came before listen, then the end': async (open) => {
    const greeting = pattern(5_000, 4)
    const { here, until } = await open((there) => {
      there.channel.send(greeting)
      void there.channel.close()
    })
    here.listen()
    await until(() => here.closings.length > 0)
    assertBytes(here.bytes(), greeting)
    assert.deepEqual(here.closings, [undefined])
  },

  'takes an empty send for nothing': async (open) => {
    const { here, there, until } = await open()
    here.listen()
    assert.equal(here.channel.send(new Uint8Array(0)), true)
    here.channel.send(pattern(3, 5))
    await until(() => there.size >= 3)
    assertBytes(there.bytes(), pattern(3, 5))
    assert.ok(there.pieces.every((piece) => piece.length > 0))
  },

  'answers from inside of data': async (open) => {
    const { here, until } = await open((there) => {
      there.onData = (bytes) => void there.channel.send(bytes)
    })
    here.listen()
    here.channel.send(pattern(50_000, 6))
    await until(() => here.size >= 50_000)
    assertBytes(here.bytes(), pattern(50_000, 6))
  },

  'holds back a sender whose bytes are not read, and says when to go on': async (open) => {
    const { here, there, until } = await open()
    here.listen()
    there.channel.pause()
    const sent = sendUntilHeldBack(here)
    assert.equal(here.drains, 0)
    assert.equal(there.size, 0, 'a paused channel delivered bytes')
    there.channel.resume()
    await until(() => here.drains > 0 && there.size >= sent)
    assert.equal(there.size, sent)
    assert.equal(here.channel.send(pattern(PIECE, 8)), true, 'send must be taken again after drained')
  },

  'tells how much is still on this side, less and less as it is read': async (open) => {
    const { here, there, until } = await open()
    here.listen()
    assert.equal(here.channel.unsentBytes, 0)
    there.channel.pause()
    sendUntilHeldBack(here)
    // Beyond what any window takes.
    here.channel.send(pattern(2 * 1024 * 1024, 7))
    const most = here.channel.unsentBytes
    assert.ok(most > 0, 'held back, and nothing is said to be on this side')
    there.channel.resume()
    await until(() => here.channel.unsentBytes < most)
    await until(() => here.drains > 0)
    assert.equal(here.channel.unsentBytes, 0)
  },

  'does not say drained to one who was never held back': async (open) => {
    const { here, there, until } = await open()
    here.listen()
    assert.equal(here.channel.send(pattern(10, 8)), true)
    await until(() => there.size >= 10)
    assert.equal(here.drains, 0)
  },

  'delivers nothing between pause and resume': async (open) => {
    const { here, there, until } = await open()
    here.listen()
    here.channel.send(pattern(100, 9))
    await until(() => there.size >= 100)
    there.channel.pause()
    here.channel.send(pattern(200, 10))
    // An answer on the way back shows that time has passed in which the bytes could have come.
    there.channel.send(pattern(1, 0))
    await until(() => here.size >= 1)
    assert.equal(there.size, 100)
    there.channel.resume()
    await until(() => there.size >= 300)
    assertBytes(there.bytes().subarray(100), pattern(200, 10))
  },

  'gives up the rest of what has come when data pauses': async (open) => {
    const { here, there, until } = await open((recorder) => {
      recorder.onData = () => recorder.channel.pause()
    })
    here.listen()
    for (let i = 0; i < 20; i++) here.channel.send(pattern(1_000, i))
    await until(() => there.pieces.length > 0)
    while (there.size < 20_000) {
      const pieces = there.pieces.length
      there.channel.resume()
      await until(() => there.pieces.length > pieces)
      assert.equal(there.pieces.length, pieces + 1, 'a piece was delivered after pause')
    }
  },

  'flushes what was sent before it ends': async (open) => {
    const { here, there, until } = await open()
    here.listen()
    const bytes = pattern(3 * 1024 * 1024, 11)
    here.channel.send(bytes)
    void here.channel.close()
    await until(() => there.closings.length > 0)
    assertBytes(there.bytes(), bytes)
    assert.deepEqual(there.closings, [undefined])
  },

  'can still be read after close': async (open) => {
    const { here, there, until } = await open()
    here.listen()
    here.channel.send(pattern(10, 12))
    await until(() => there.size >= 10)
    await here.channel.close()
    await until(() => there.closings.length > 0)
    assert.deepEqual(here.closings, [], 'its own close is not the end of what it reads')
    there.channel.send(pattern(70_000, 13))
    await until(() => here.size >= 70_000)
    await there.channel.close()
    await until(() => here.closings.length > 0)
    assertBytes(here.bytes(), pattern(70_000, 13))
    assert.deepEqual([here.closings, there.closings], [[undefined], [undefined]])
  },

  'ends once on each side when both close at the same time': async (open) => {
    const { here, there, until } = await open()
    here.listen()
    const closing = Promise.all([here.channel.close(), there.channel.close()])
    await until(() => here.closings.length > 0 && there.closings.length > 0)
    await closing
    assert.deepEqual([here.closings, there.closings], [[undefined], [undefined]])
  },

  'tells of the end after the last byte, also to one who paused': async (open) => {
    const { here, there, until } = await open()
    here.listen()
    here.channel.pause()
    there.channel.send(pattern(1_000, 14))
    await there.channel.close()
    here.channel.send(pattern(1, 0))
    await until(() => there.size >= 1)
    assert.deepEqual([here.size, here.closings], [0, []])
    here.channel.resume()
    await until(() => here.closings.length > 0)
    assertBytes(here.bytes(), pattern(1_000, 14))
    assert.deepEqual(here.closings, [undefined])
  },

  'takes nothing after close': async (open) => {
    const { here, there, until } = await open()
    here.listen()
    here.channel.send(pattern(5, 15))
    const closing = here.channel.close()
    assert.equal(here.channel.send(pattern(5, 16)), false)
    await Promise.all([closing, here.channel.close(), until(() => there.closings.length > 0)])
    assertBytes(there.bytes(), pattern(5, 15))
  },

  'resets both sides on abort, each told once': async (open) => {
    const { here, there, until } = await open()
    here.listen()
    const reason = new Error('enough')
    here.channel.abort(reason)
    await until(() => here.closings.length > 0 && there.closings.length > 0)
    assert.equal(here.closings[0], reason)
    assert.ok(there.closings[0] instanceof Error)
    here.channel.abort(new Error('again'))
    there.channel.abort(new Error('again'))
    assert.equal(here.channel.send(pattern(5, 17)), false)
    assert.equal(there.channel.send(pattern(5, 17)), false)
    await Promise.all([here.channel.close(), there.channel.close()])
    assert.deepEqual([here.closings.length, there.closings.length], [1, 1])
  },

  'resets when the side that did not open it aborts inside of data': async (open) => {
    const { here, there, until } = await open((recorder) => {
      recorder.onData = () => recorder.channel.abort(new Error('unwanted'))
    })
    here.listen()
    for (let i = 0; i < 20; i++) here.channel.send(pattern(1_000, i))
    await until(() => here.closings.length > 0 && there.closings.length > 0)
    assert.equal(there.pieces.length, 1, 'a piece was delivered after abort')
    assert.ok(here.closings[0] instanceof Error)
    assert.deepEqual([here.closings.length, there.closings.length], [1, 1])
  },

  'can be aborted while its close waits for a reader': async (open) => {
    const { here, there, until } = await open()
    here.listen()
    there.channel.pause()
    sendUntilHeldBack(here)
    const closing = here.channel.close()
    here.channel.abort(new Error('no time left'))
    await until(() => here.closings.length > 0 && there.closings.length > 0)
    await closing
    assert.deepEqual([here.closings.length, there.closings.length], [1, 1])
    assert.ok(there.closings[0] instanceof Error)
  },

  'tells one who listens late that it was reset': async (open) => {
    const { here, until } = await open((there) => {
      there.onData = () => there.channel.abort(new Error('unwanted'))
    })
    let sent = 0
    await until(() => !here.channel.send(pattern(1, 19)) || ++sent === 10_000)
    assert.notEqual(sent, 10_000, 'send never returned false although the channel was reset')
    here.listen()
    await until(() => here.closings.length > 0)
    assert.equal(here.closings.length, 1)
    assert.ok(here.closings[0] instanceof Error)
  },

  'calls the listener that was set last': async (open) => {
    const { here, there, until } = await open()
    here.listen()
    there.channel.send(pattern(10, 20))
    await until(() => here.size >= 10)
    const later = createRecorder(here.channel)
    later.listen()
    there.channel.send(pattern(10, 21))
    await until(() => later.size >= 10)
    await there.channel.close()
    await until(() => later.closings.length > 0)
    assert.deepEqual([here.size, here.closings.length], [10, 0])
  },
}

function assertBytes(actual: Uint8Array, expected: Uint8Array): void {
  assert.equal(actual.length, expected.length)
  assert.ok(Buffer.compare(actual, expected) === 0, 'the bytes differ')
}

/** Sends until `send` says `false`; returns the number of bytes. */
function sendUntilHeldBack({ channel }: Recorder): number {
  const piece = pattern(PIECE, 7)
  let sent = PIECE
  while (channel.send(piece)) {
    sent += PIECE
    assert.ok(sent < MUCH, 'send never returned false although nothing was read')
  }
  return sent
}
