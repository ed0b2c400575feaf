import type { SignedHop } from '@hermes-peer/protocol'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { eventually } from '../eventually.ts'
import { hostileKey, otherKey, settled, victimKey } from '../provider.ts'
import { scene } from '../scene.ts'
import { ask, direct, fate, handed, holder, isAnswer, middle, SUBMIT, thirdKey } from './handed.ts'

/** What is broken in the victim while one test runs. */
const broken = vi.hoisted(() => ({
  hops: false,
  loops: false,
  ttl: false,
  originator: false,
  makers: false,
  ways: false,
  owners: false,
  copies: false,
  passing: false,
}))

vi.mock('@hermes-peer/protocol', async (original) => {
  const real = await original<typeof import('@hermes-peer/protocol')>()
  /** The last hop, whatever it says. */
  const unchecked = (hops: readonly SignedHop[]) => real.decodeHop((hops.at(-1) as SignedHop).body)
  const verifyHops: typeof real.verifyHops = (context) => {
    const { header, hops } = context
    if (broken.hops) return unchecked(hops)
    if (broken.ttl) return real.verifyHops({ ...context, header: { ...header, max_hops: 7 } })
    try {
      return real.verifyHops(context)
    } catch (error) {
      if (broken.loops && /passes an agent twice|leads back/.test((error as Error).message)) return unchecked(hops)
      throw error
    }
  }
  return {
    ...real,
    verifyHops,
    verifyEnvelope: ((frame, key, memory) =>
      broken.originator
        ? real.leafOf(frame.header)
        : real.verifyEnvelope(frame, key, memory)) as typeof real.verifyEnvelope,
  }
})

vi.mock('../../../packages/peer/src/forwarding/arrivals.ts', async (original) => {
  const real = await original<typeof import('../../../packages/peer/src/forwarding/arrivals.ts')>()
  const createArrivals: typeof real.createArrivals = (options) => {
    const foreign = real.createArrivals(options)
    return {
      receive(arrived, sink) {
        const { in_reply_to } = arrived.header
        const way = broken.makers && in_reply_to ? options.ways.get(in_reply_to) : undefined
        if (way) options.pass(way, arrived, '0'.repeat(64))
        else foreign.receive(arrived, sink)
      },
    }
  }
  return { ...real, createArrivals }
})

vi.mock('../../../packages/peer/src/forwarding/ways.ts', async (original) => {
  const real = await original<typeof import('../../../packages/peer/src/forwarding/ways.ts')>()
  const createWays: typeof real.createWays = (options) => {
    const ways = real.createWays(options)
    const end = ways.end.bind(ways)
    // It is open for ever to whatever comes after the answer.
    ways.end = (way) => {
      if (!broken.ways) end(way)
    }
    return ways
  }
  return { ...real, createWays }
})

vi.mock('../../../packages/peer/src/forwarding/pass-on.ts', async (original) => {
  const real = await original<typeof import('../../../packages/peer/src/forwarding/pass-on.ts')>()
  const createPassOn: typeof real.createPassOn = (options) => {
    const { handedTasks } = options
    const holder: typeof handedTasks.holder = (owner, taskId, question) =>
      handedTasks.holder(broken.passing ? 'origin' : owner, taskId, question)
    return real.createPassOn({
      ...options,
      handedTasks: {
        get some() {
          return handedTasks.some
        },
        holder,
        passed: (...news) => handedTasks.passed(...news),
      },
    })
  }
  return { ...real, createPassOn }
})

vi.mock('../../../packages/peer/src/calls/tasks/task-book.ts', async (original) => {
  const real = await original<typeof import('../../../packages/peer/src/calls/tasks/task-book.ts')>()
  const createTaskBook: typeof real.createTaskBook = (options) => {
    const book = real.createTaskBook(options)
    const { find } = book
    book.find = (owner, taskId) => {
      if (broken.copies && owner === 'origin') return undefined
      return find.call(book, owner, taskId) ?? (broken.owners ? find.call(book, 'origin', taskId) : undefined)
    }
    return book
  }
  return { ...real, createTaskBook }
})

/** What the same attack comes to before and after the victim is broken. */
async function beforeAndAfter<T>(fault: keyof typeof broken, run: () => Promise<T>): Promise<{ sound: T; broken: T }> {
  const sound = await run()
  broken[fault] = true
  try {
    return { sound, broken: await run() }
  } finally {
    broken[fault] = false
  }
}

const twice = [
  { by: victimKey, next: 'hostile' },
  { by: hostileKey, next: 'victim' },
]

describe('a victim with a planted fault is caught by', () => {
  afterEach(() => {
    for (const fault of Object.keys(broken) as (keyof typeof broken)[]) broken[fault] = false
  })

  it.each<[string, keyof typeof broken, string, () => ReturnType<typeof handed>]>([
    [
      'the forged hops: a hop is not verified',
      'hops',
      'BAD_HOPS',
      () => handed([{ by: thirdKey, next: 'hostile', signer: hostileKey.key }, direct], SUBMIT),
    ],
    [
      'the stripped hops: nobody asks whether they begin at the first addressee',
      'hops',
      'BAD_HOPS',
      () => handed([{ by: thirdKey, next: 'hostile' }, direct], SUBMIT, { change: ([, last]) => [last as SignedHop] }),
    ],
    [
      'the reordered hops',
      'hops',
      'BAD_HOPS',
      () => handed([{ by: thirdKey, next: 'hostile' }, direct], SUBMIT, { change: (hops) => hops.reverse() }),
    ],
    ['the loops: a message may come back to where it has been', 'loops', 'BAD_HOPS', () => handed(twice, SUBMIT)],
    [
      'the exhausted ones: hops are not counted',
      'ttl',
      'TTL_EXPIRED',
      () => handed([direct], { ...SUBMIT, max_hops: 0 }),
    ],
    [
      'the forged originator: the signature of the envelope is not verified',
      'originator',
      'BAD_SIGNATURE',
      () => handed([direct], { ...SUBMIT, sign: (signed) => hostileKey.key.sign(signed) }),
    ],
  ])('%s', async (_, fault, code, attack) => {
    const at = await holder(scene())
    // All keys are known: what is judged is judged by what it is.
    expect(await fate(at, handed([{ by: thirdKey, next: 'hostile' }, direct], SUBMIT))).toBe('ack')
    expect(await beforeAndAfter(fault, () => fate(at, attack()))).toEqual({ sound: code, broken: 'ack' })
  })

  it('the stolen tasks: an owner is not asked for', async () => {
    const at = await holder(scene())
    const { taskId: task_id } = await at.begun()
    const watch = () => fate(at, handed([direct], ask('hermes.task.watch', { task_id, after: 0 }), { self: thirdKey }))
    expect(await beforeAndAfter('owners', watch)).toEqual({ sound: 'TASK_NOT_FOUND', broken: 'response' })
  })

  it('the copies: a task that has come by hops is not known again', async () => {
    const at = await holder(scene())
    const starts = await beforeAndAfter('copies', async () => {
      at.started.length = 0
      const submit = handed([direct], SUBMIT)
      for (let i = 0; i < 2; i++) {
        await at.told(submit)
        await eventually(() => at.started.length > 0, 'the handler')
      }
      await settled(at.link)
      // Whoever is started a second time is started at once, as nothing waits.
      if (broken.copies) await eventually(() => at.started.length > 1, 'the second start')
      return at.started.length
    })
    expect(starts).toEqual({ sound: 1, broken: 2 })
  })

  it('the answers of others: what comes from another neighbour is passed on as the answer', async () => {
    const handed = await beforeAndAfter('makers', async () => {
      const { other, origin, next, take, watch } = await middle(scene())
      await take()
      const asked = watch(2)
      const passed = await next.next(({ header }) => header.target_capability === 'hermes.task.watch')
      other.answer(passed, { task_id: 'stolen' }, { recipient: { agent_id: 'origin' } })
      await settled(other)
      await settled(origin)
      return origin.heard.filter((one) => isAnswer(one) && one.header.in_reply_to === asked.leaf).length
    })
    expect(handed).toEqual({ sound: 0, broken: 1 })
  })

  it('the further answers: the way stays open once it is answered', async () => {
    const answers = await beforeAndAfter('ways', async () => {
      const { origin, next, take, watch } = await middle(scene())
      await take()
      const asked = watch(2)
      const passed = await next.next(({ header }) => header.target_capability === 'hermes.task.watch')
      for (let i = 0; i < 2; i++) next.answer(passed, { i }, { recipient: { agent_id: 'origin' } })
      await settled(next)
      await settled(origin)
      return origin.heard.filter(({ header }) => header.in_reply_to === asked.leaf).length
    })
    expect(answers).toEqual({ sound: 1, broken: 2 })
  })

  it('the questions of strangers: they are passed on about tasks that are not theirs', async () => {
    const passed = await beforeAndAfter('passing', async () => {
      const { other, next, taskId: task_id, take } = await middle(scene())
      await take()
      const asked = other.request('hermes.task.watch', { task_id, after: 0 }, { ordered: false })
      const came = (): boolean => next.heard.some(({ header }) => header.sender.agent_id === otherKey.agentId)
      await eventually(() => came() || other.heard.some(({ header }) => header.in_reply_to === asked.leaf), 'an end')
      return came()
    })
    expect(passed).toEqual({ sound: false, broken: true })
  })
})
