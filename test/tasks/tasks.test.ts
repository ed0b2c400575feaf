import { type TestNetwork, testNetwork } from '@hermes-peer/testkit'
import { HermesError, type Peer, type TaskUpdate } from 'hermes-peer'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { index, pay, payInTurn, repair } from './contracts.ts'

let net: TestNetwork
let pm: Peer
beforeEach(async () => {
  net = testNetwork({ seed: 11 })
})
afterEach(() => net[Symbol.asyncDispose]())

/** A provider and a caller that know each other. */
async function team(prepare: (peer: Peer) => void): Promise<void> {
  await net.until(net.launch('coder', prepare))
  pm = await net.peer('pm')
}

/** The two no longer reach each other. */
const apart = (): void => net.faults.partition([[net.peerId('pm')], [net.peerId('coder')]])

const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'OK',
    (error: unknown) => HermesError.from(error).declared?.name ?? HermesError.from(error).code,
  )

/** What is said of each update. */
const inShort = (update: TaskUpdate<typeof repair>): string => {
  switch (update.type) {
    case 'progress':
      return `progress ${update.fraction} ${update.note ?? ''}`.trim()
    case 'partial':
      return `partial ${update.data.plan}`
    case 'question':
      return `question ${update.question.plan}`
    default:
      return `${update.type} ${update.state}`
  }
}

function coder(peer: Peer): void {
  peer.provide(repair, async ({ source }, ctx) => {
    ctx.partial({ plan: '改一行' })
    const { approved } = await ctx.ask({ plan: '改一行' })
    if (!approved) throw ctx.error('REFUSED', { plan: '改一行' })
    ctx.progress(0.5, 'applying')
    return { source: source.toUpperCase() }
  })
}

describe('a task', () => {
  it('tells its progress, asks, and ends with its result', async () => {
    await team(coder)
    const task = await net.until(pm.submit(repair, { source: 'abc' }))
    expect(task.id).toMatch(/^task_[A-Za-z0-9]{16}$/)
    expect([task.agent, task.acknowledged]).toEqual(['coder', true])
    const told: string[] = []
    const follow = (async () => {
      for await (const update of task.updates()) {
        told.push(inShort(update))
        if (update.type === 'question') await update.answer({ approved: true })
      }
    })()
    await net.until(follow)
    expect(told).toEqual([
      'state accepted',
      'state working',
      'partial 改一行',
      'question 改一行',
      'state input_required',
      'state working',
      'progress 0.5 applying',
      'end completed',
    ])
    expect(await net.until(task.result())).toEqual({ source: 'ABC' })
    expect((await net.until(task.status())).state).toBe('completed')
  })

  it('ends with a declared error as a call does', async () => {
    await team(coder)
    const task = await net.until(pm.submit(repair, { source: 'abc' }))
    await net.until(
      (async () => {
        for await (const update of task.updates()) {
          if (update.type === 'question') await update.answer({ approved: false })
        }
      })(),
    )
    const error = await net.until(task.result().catch((thrown: unknown) => thrown))
    expect(error).toMatchObject({ declared: { name: 'REFUSED', data: { plan: '改一行' } } })
    expect((await net.until(task.status())).state).toBe('failed')
  })

  it('takes an answer once; another one to the same question is refused, the same again is not', async () => {
    await team(coder)
    const task = await net.until(pm.submit(repair, { source: 'abc' }))
    await net.advance('1s')
    const { state, questions, partial } = await net.until(task.status())
    expect([state, questions.length, partial]).toEqual(['input_required', 1, { plan: '改一行' }])
    const [open] = questions
    expect(await net.until(codeOf(open?.answer({ approved: 'yes' } as never) as Promise<void>))).toBe(
      'VALIDATION_ERROR',
    )
    await net.until(open?.answer({ approved: true }) as Promise<void>)
    expect(await net.until(codeOf(open?.answer({ approved: false }) as Promise<void>))).toBe('TASK_NOT_WAITING')
    expect(await net.until(task.result())).toEqual({ source: 'ABC' })
  })

  it('is refused as a plain call where the contract asks questions, before anything starts', async () => {
    await team(coder)
    expect(await net.until(codeOf(pm.call(repair, { source: 'x' })))).toBe('TASK_REQUIRED')
  })

  it('is cancelled by its owner: the handler hears of it, and the first end counts', async () => {
    let reason: unknown
    await team((peer) =>
      peer.provide(index, async (_, { signal }) => {
        await new Promise((_, reject) =>
          signal.addEventListener('abort', () => {
            reason = signal.reason
            reject(signal.reason)
          }),
        )
        return { files: 1 }
      }),
    )
    const task = await net.until(pm.submit(index, { folder: '/src' }))
    await net.advance('1s')
    expect(await net.until(task.cancel())).toBe('cancelled')
    expect(await net.until(task.cancel())).toBe('cancelled')
    expect((reason as HermesError).code).toBe('CANCELLED')
    expect(await net.until(codeOf(task.result()))).toBe('CANCELLED')
  })

  it('cancelling one that has ended returns its end', async () => {
    await team((peer) => peer.provide(index, () => ({ files: 3 })))
    const task = await net.until(pm.submit(index, { folder: '/src' }))
    expect(await net.until(task.result())).toEqual({ files: 3 })
    expect(await net.until(task.cancel())).toBe('completed')
  })

  it('survives the disconnect of its caller, and its news go on where they were', async () => {
    await team((peer) =>
      peer.provide(index, async (_, ctx) => {
        for (let i = 1; i <= 4; i++) {
          await net.sleep('5s')
          ctx.progress(i / 4)
        }
        return { files: 4 }
      }),
    )
    const task = await net.until(pm.submit(index, { folder: '/src' }))
    const told: number[] = []
    const follow = (async () => {
      for await (const update of task.updates()) if (update.type === 'progress') told.push(update.fraction)
    })()
    await net.advance('6s')
    apart()
    await net.advance('30s')
    net.faults.heal()
    await net.until(follow)
    expect(told).toEqual([0.25, 0.5, 0.75, 1])
  })

  it('is nobody else’s: another agent cannot see, answer or cancel it', async () => {
    await team(coder)
    const task = await net.until(pm.submit(repair, { source: 'abc' }))
    const other = await net.peer('other')
    const stolen = other.task(repair, task.id, { agent: 'coder' })
    expect(await net.until(codeOf(stolen.status()))).toBe('TASK_NOT_FOUND')
    expect(await net.until(codeOf(stolen.result()))).toBe('TASK_NOT_FOUND')
    // It learns nothing: what it cancels is a task of its own of that name, which there will never be.
    expect(await net.until(stolen.cancel())).toBe('cancelled')
    await net.advance('1s')
    expect((await net.until(task.status())).state).toBe('input_required')
  })

  it('ends when its budget is over', async () => {
    await team((peer) => peer.provide(index, () => new Promise<never>(() => undefined)))
    const task = await net.until(pm.submit(index, { folder: '/src' }))
    await net.advance('61m')
    expect(await net.until(codeOf(task.result()))).toBe('TIMEOUT')
    expect((await net.until(task.status())).state).toBe('failed')
  })

  it('folds news that nobody fetched in time into one', async () => {
    await team((peer) =>
      peer.provide(index, (_, ctx) => {
        for (let i = 0; i <= 1000; i++) ctx.progress(i / 1000, `${i}`)
        return { files: 1 }
      }),
    )
    const task = await net.until(pm.submit(index, { folder: '/src' }))
    expect(await net.until(task.result())).toEqual({ files: 1 })
    const numbers: number[] = []
    const kinds: string[] = []
    await net.until(
      (async () => {
        for await (const { n, type } of task.updates()) {
          numbers.push(n)
          kinds.push(type)
        }
      })(),
    )
    expect(kinds[0]).toBe('snapshot')
    expect(kinds).toHaveLength(257)
    expect(numbers.slice(1)).toEqual(Array.from({ length: 256 }, (_, i) => (numbers[0] as number) + 1 + i))
    expect(kinds.at(-1)).toBe('end')
  })
})

describe('a provider that keeps as many tasks of one owner as it may', () => {
  it('refuses a further one as busy, and takes it once an end was told', async () => {
    let end = (): void => undefined
    const gate = new Promise<void>((resolve) => {
      end = resolve
    })
    const provide = (peer: Peer) =>
      peer.provide(index, async () => {
        await gate
        return { files: 1 }
      })
    await net.until(net.launch('coder', (peer) => void provide(peer), { tuning: { tasksPerOwner: 2 } }))
    pm = await net.peer('pm')
    const submit = () => pm.submit(index, { folder: '/src' }, { timeoutMs: 2_000 })
    const first = await net.until(submit())
    await net.until(submit())
    expect(await net.until(codeOf(submit()))).toBe('BUSY')
    end()
    expect(await net.until(first.result())).toEqual({ files: 1 })
    const third = await net.until(submit())
    expect(await net.until(third.result())).toEqual({ files: 1 })
    // What made room for it is not known any more.
    expect(await net.until(codeOf(pm.task(index, first.id, { agent: 'coder' }).status()))).toBe('TASK_NOT_FOUND')
  })
})

describe('a submit that nobody can take now', () => {
  it('returns its handle after its time as submitted, and is delivered when the agent is there', async () => {
    await team((peer) => peer.provide(index, () => ({ files: 9 })))
    apart()
    await net.advance('20s')
    const task = await net.until(pm.submit(index, { folder: '/src' }, { agent: 'coder', timeoutMs: 4_000 }))
    expect(task.acknowledged).toBe(false)
    const result = task.result()
    await net.advance('30s')
    net.faults.heal()
    expect(await net.until(result)).toEqual({ files: 9 })
    expect(task.acknowledged).toBe(true)
  })

  it('that is cancelled before it was sent is never started', async () => {
    let runs = 0
    await team((peer) =>
      peer.provide(index, () => {
        runs++
        return { files: 9 }
      }),
    )
    await net.crash('coder')
    await net.advance('20s')
    const task = await net.until(pm.submit(index, { folder: '/src' }, { agent: 'coder', timeoutMs: 1_000 }))
    expect(await net.until(task.cancel())).toBe('cancelled')
    await net.until(
      net.launch('coder', (peer) =>
        peer.provide(index, () => {
          runs++
          return { files: 9 }
        }),
      ),
    )
    await net.advance('60s')
    expect(runs).toBe(0)
    expect((await net.until(task.status())).state).toBe('rejected')
    expect(await net.until(codeOf(task.result()))).toBe('CANCELLED')
  })

  it('that is cancelled while it is on its way: the agent says which end counts', async () => {
    const begun: AbortSignal[] = []
    await team((peer) =>
      peer.provide(index, async (_, { signal }) => {
        begun.push(signal)
        await net.sleep('1s')
        return { files: 9 }
      }),
    )
    apart()
    const task = await net.until(pm.submit(index, { folder: '/src' }, { agent: 'coder', timeoutMs: 1_000 }))
    expect(await net.until(codeOf(task.cancel({ timeoutMs: 1_000 })))).toBe('TIMEOUT')
    net.faults.heal()
    expect(await net.until(codeOf(task.result()))).toBe('CANCELLED')
    await net.advance('5s')
    // Either it was cancelled while it was being stored, or its handler was told.
    for (const { reason } of begun) expect((reason as HermesError).code).toBe('CANCELLED')
    expect(await net.until(task.cancel())).toBe('cancelled')
  })

  it('is refused where nobody provides it, with the explanation', async () => {
    await team(coder)
    expect(await net.until(codeOf(pm.submit(pay, { invoice: '7' })))).toBe('NO_CANDIDATE')
  })
})

describe('a restart', () => {
  it('of the provider runs an accepted task again where its effects allow', async () => {
    let runs = 0
    const provide = (peer: Peer) =>
      peer.provide(index, async () => {
        const run = ++runs
        await net.sleep('5s')
        return { files: run }
      })
    await team((peer) => void provide(peer))
    const task = await net.until(pm.submit(index, { folder: '/src' }))
    await net.advance('1s')
    await net.crash('coder')
    await net.until(net.launch('coder', (peer) => void provide(peer)))
    expect(await net.until(task.result())).toEqual({ files: 2 })
    const states: string[] = []
    await net.until(
      (async () => {
        for await (const update of task.updates()) if (update.type === 'state') states.push(update.state)
      })(),
    )
    expect(states).toEqual(['accepted', 'working', 'accepted', 'working'])
  })

  it('of the provider ends one with effects once that was begun as interrupted, and never starts it again', async () => {
    let runs = 0
    const provide = (peer: Peer) =>
      peer.provide(pay, async () => {
        runs++
        await net.sleep('5s')
        return { paid: true }
      })
    await team((peer) => void provide(peer))
    const task = await net.until(pm.submit(pay, { invoice: '7' }))
    await net.advance('1s')
    await net.crash('coder')
    await net.until(net.launch('coder', (peer) => void provide(peer)))
    expect(await net.until(codeOf(task.result()))).toBe('TASK_INTERRUPTED')
    expect(runs).toBe(1)
    expect((await net.until(task.status())).state).toBe('interrupted')
  })

  it('of the provider fails a task whose capability is gone, after a minute', async () => {
    await team((peer) => peer.provide(index, () => new Promise<never>(() => undefined)))
    const task = await net.until(pm.submit(index, { folder: '/src' }))
    await net.crash('coder')
    await net.until(net.launch('coder'))
    await net.advance('61s')
    expect(await net.until(codeOf(task.result()))).toBe('CAPABILITY_NOT_FOUND')
  })

  it('of the caller finds its task by its id', async () => {
    await team((peer) =>
      peer.provide(index, async () => {
        await net.sleep('20s')
        return { files: 5 }
      }),
    )
    const { id } = await net.until(pm.submit(index, { folder: '/src' }))
    await net.crash('pm')
    pm = await net.peer('pm')
    const task = pm.task(index, id)
    expect(task.agent).toBe('coder')
    expect(await net.until(task.result())).toEqual({ files: 5 })
    expect(() => pm.task(index, 'task_0000000000000000')).toThrow(/journal does not know/)
    expect(() => pm.task(repair, id)).toThrow(/was submitted to index/)
  })

  it('of the caller sends on what nobody had acknowledged', async () => {
    let runs = 0
    await team((peer) =>
      peer.provide(index, () => {
        runs++
        return { files: 5 }
      }),
    )
    apart()
    await net.advance('20s')
    const { id } = await net.until(pm.submit(index, { folder: '/src' }, { agent: 'coder', timeoutMs: 1_000 }))
    await net.crash('pm')
    net.faults.heal()
    pm = await net.peer('pm')
    expect(await net.until(pm.task(index, id).result())).toEqual({ files: 5 })
    expect(runs).toBe(1)
  })
})

describe('a graceful stop', () => {
  it('lets a task end that no other life could start again, and leaves the others to it', async () => {
    const runs = { pay: 0, index: 0 }
    const provide = (peer: Peer) =>
      peer
        .provide(pay, async () => {
          runs.pay++
          await net.sleep('5s')
          return { paid: true }
        })
        .provide(index, async () => {
          runs.index++
          await net.sleep('60s')
          return { files: 1 }
        })
    let coder: Peer | undefined
    await team((peer) => {
      coder = provide(peer)
    })
    const [once, again] = [
      await net.until(pm.submit(pay, { invoice: '7' })),
      await net.until(pm.submit(index, { folder: '/src' })),
    ]
    await net.advance('1s')
    const since = net.timeline.now()
    await net.until(coder?.stop() as Promise<void>)
    expect(net.timeline.now() - since).toBeLessThan(6_000)
    await net.crash('coder')
    await net.until(net.launch('coder', (peer) => void provide(peer)))
    expect(await net.until(once.result())).toEqual({ paid: true })
    expect(await net.until(again.result(), { limitMs: 120_000 })).toEqual({ files: 1 })
    expect(runs).toEqual({ pay: 1, index: 2 })
  })

  it('begins nothing that waits: it is left to the next life, in its order', async () => {
    const begun: string[] = []
    const provide = (peer: Peer) =>
      peer.provide(payInTurn, async ({ invoice }, { signal }) => {
        begun.push(invoice)
        await net.sleep('3s', { signal })
        return { paid: invoice }
      })
    let coder: Peer | undefined
    await team((peer) => {
      coder = provide(peer)
    })
    const tasks = []
    for (const invoice of ['1', '2', '3']) tasks.push(await net.until(pm.submit(payInTurn, { invoice })))
    await net.until(coder?.stop() as Promise<void>)
    expect(begun).toEqual(['1'])
    await net.crash('coder')
    await net.until(net.launch('coder', (peer) => void provide(peer)))
    for (const [index, task] of tasks.entries()) {
      expect(await net.until(task.result())).toEqual({ paid: String(index + 1) })
    }
    expect(begun).toEqual(['1', '2', '3'])
  })
})
