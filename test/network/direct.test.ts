import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net'
import { capability } from 'hermes-peer'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { until } from '../../packages/peer/test/waiting.ts'
import { rawRelay } from './raw-relay.ts'
import { agent, freePort } from './support.ts'

const count = capability('count', {
  description: 'Counts to a number, when it is told to.',
  input: z.object({ to: z.number() }),
  yields: z.number(),
  output: z.object({ counted: z.number() }),
  effects: 'once',
})
const add = capability('add', {
  description: 'Adds two numbers.',
  input: z.object({ a: z.number(), b: z.number() }),
  output: z.object({ sum: z.number() }),
  effects: 'once',
})

/** A port that leads to another one of this machine once it is opened; until then it keeps everybody waiting. */
async function doorTo(port: number) {
  const sockets: Socket[] = []
  const door = { port: 0, waiting: 0, open: (): void => undefined }
  const opened = new Promise<void>((resolve) => {
    door.open = resolve
  })
  const server = createServer((near) => {
    door.waiting++
    const far = createConnection(port, '127.0.0.1')
    sockets.push(near, far)
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.on('error', () => undefined).on('close', () => other.destroy())
      void opened.then(() => one.pipe(other))
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  door.port = (server.address() as AddressInfo).port
  return door
}

describe('a link that began through a relay', () => {
  // Whose peer id is lower decides who moves it: both ways round.
  it.each([
    ['hidden', 'caller'],
    ['caller', 'hidden'],
  ])(
    'of %s moves to the direct connection as soon as there is one, and loses no call and no stream by it',
    async (below, above) => {
      const relay = await rawRelay('relay')
      let goOn = (): void => undefined
      const moved = new Promise<void>((resolve) => {
        goOn = resolve
      })
      const hidden = await agent(below, { listen: [], relay: { via: [relay.address] } })
        .provide(add, async ({ a, b }) => ({ sum: a + b }))
        .provide(count, async function* ({ to }) {
          for (let n = 1; n <= to; n++) {
            // The first half goes before the move, the rest after it.
            if (n === to / 2) await moved
            yield n
          }
          return { counted: to }
        })
        .start()
      // DCUtR dials only what may be a public address; a name counts as one. What answers there waits until all runs.
      const port = await freePort()
      const door = await doorTo(port)
      const caller = agent(above, {
        listen: [`/ip4/127.0.0.1/tcp/${port}`],
        announce: [`/dns4/localhost/tcp/${door.port}`],
        bootstrap: [...hidden.addresses],
      })
      const links: boolean[] = []
      caller.events.on('link.up', ({ address }) => links.push(address.includes('/p2p-circuit/')))
      await caller.start()
      const stream = caller.stream(count, { to: 10 })
      const seen: number[] = []
      const reading = (async () => {
        for await (const n of stream) seen.push(n)
      })()
      await until(() => seen.length === 4 && door.waiting > 0, 'all to run through the relay')
      expect(links).toEqual([true])
      door.open()
      await until(() => links.includes(false), 'the link to move')
      goOn()
      const sums = await Promise.all(Array.from({ length: 20 }, (_, n) => caller.call(add, { a: n, b: 1 })))
      expect(sums.map(({ sum }) => sum)).toEqual(Array.from({ length: 20 }, (_, n) => n + 1))
      await reading
      expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
      expect(await stream.result).toEqual({ counted: 10 })
      // It does not need the relay any more.
      await relay.stop()
      expect(await caller.call(add, { a: 40, b: 2 })).toEqual({ sum: 42 })
    },
  )
})
