// A peer in a process of its own that yields as fast as it is let, and tells what that took.
import { createPeer, type PeerOptions } from 'hermes-peer'
import { echo, figures, PAGE, pages } from './contracts.ts'
import { resident } from './memory.ts'

const peer = createPeer(JSON.parse(process.argv[2] as string) as PeerOptions)
const memory = resident()
let pauses = 0
let made = 0
peer
  .provide(echo, (input) => input)
  .provide(pages, async function* ({ count }) {
    for (let page = 0; page < count; page++) {
      made++
      if (page % 100 === 0) memory.look()
      yield PAGE
    }
    return { made: count }
  })
  .provide(figures, () => {
    const told = { growth: memory.growth(), pauses, made }
    pauses = 0
    made = 0
    memory.start()
    return told
  })
peer.events.on('stream.flow', ({ paused }) => {
  if (paused) pauses++
})
// Whoever started this process may be gone without a word.
process.on('disconnect', () => process.exit())
await peer.start()
process.send?.('ready')
