import { describe, expect, it } from 'vitest'
import { type Does, follow, gated, JOB, type TaskLine, taskLine, to } from './task-line.ts'

const asks: Does = async ({ n }, ctx) => {
  ctx.progress(0.25)
  ctx.partial({ so_far: 1 })
  const { yes } = await ctx.ask({ go_on: 'with it?' })
  if (!yes) throw ctx.error('REFUSED', { by: 'c' })
  ctx.progress(0.5)
  return { by: 'c', n }
}

describe('a task that is handed on', () => {
  it('lives at the next agent and belongs to who submitted it: news, question and result come back', async () => {
    const { net, peer, started, of } = await taskLine('abc', { b: to('c'), c: asks })
    const task = await net.until(peer('a').submit(JOB.once, { n: 1 }, { agent: 'b' }))
    expect(task.acknowledged).toBe(true)
    const { told, numbers } = await net.until(follow(task))
    expect(told.slice(-8)).toEqual([
      'state working',
      'progress 0.25',
      'partial 1',
      'question with it?',
      'state input_required',
      'state working',
      'progress 0.5',
      'end completed',
    ])
    expect(numbers).toEqual([...numbers].sort((x, y) => x - y))
    expect(await net.until(task.result())).toEqual({ by: 'c', n: 1 })
    expect(task.agent).toBe('c')
    expect((await net.until(task.status())).state).toBe('completed')
    expect(started.map(({ by, ctx }) => [by, ctx.caller, ctx.via])).toEqual([
      ['b', 'a', []],
      ['c', 'a', ['b']],
    ])
    expect(of('b', 'task.handed')).toMatchObject([{ taskId: task.id, from: 'a', to: 'c' }])
  })

  it('ends with the error that its contract declares', async () => {
    const { net, peer } = await taskLine('abc', { b: to('c'), c: asks })
    const task = await net.until(peer('a').submit(JOB.none, { n: 1 }, { agent: 'b' }))
    const { questions } = await net.until(untilAsked(task))
    await net.until(questions[0]?.answer({ yes: false }) as Promise<void>)
    const error = await net.until(task.result().catch((thrown: unknown) => thrown))
    expect(error).toMatchObject({ declared: { name: 'REFUSED', data: { by: 'c' } } })
    expect((await net.until(task.status())).state).toBe('failed')
  })

  it('is cancelled by its owner where it is: the handler there hears of it', async () => {
    const { net, peer, started, code, until } = await taskLine('abc', { b: to('c'), c: gated('c').does })
    const task = await net.until(peer('a').submit(JOB.none, { n: 1 }, { agent: 'b' }))
    await until(() => started.length === 2, 'the handler of the next agent')
    expect(await net.until(task.cancel())).toBe('cancelled')
    expect(started[1]?.ctx.signal.reason).toMatchObject({ code: 'CANCELLED' })
    expect(await code(task.result())).toBe('CANCELLED')
    expect(await net.until(task.cancel())).toBe('cancelled')
  })

  it('by an agent that has begun it: the news of all are one row of numbers, from any of which they go on', async () => {
    const first: Does = async (_, ctx) => {
      for (let i = 1; i <= 5; i++) ctx.progress(i / 100)
      const { yes } = await ctx.ask({ go_on: 'to c?' })
      return yes ? ctx.forward('c') : { by: 'b', n: 0 }
    }
    const { net, peer } = await taskLine('abc', { b: first, c: asks })
    const task = await net.until(peer('a').submit(JOB.none, { n: 7 }, { agent: 'b' }))
    const all = await net.until(follow(task))
    expect(all.told.filter((one) => /question|progress 0.05|end/.test(one))).toEqual([
      'progress 0.05',
      'question to c?',
      'question with it?',
      'end completed',
    ])
    const sorted = [...new Set(all.numbers)].sort((x, y) => x - y)
    expect(all.numbers).toEqual(sorted)
    for (const from of [0, 3, sorted.length - 3]) {
      const after = sorted[from] as number
      const rest = await net.until(follow(task, { after, silent: true }))
      expect(rest.numbers).toEqual(sorted.filter((n) => n > Math.max(after, 1e9)))
    }
  })

  it('goes on through several, each of which is asked by way of the one before', async () => {
    const { net, peer, started } = await taskLine('abcd', { b: to('c'), c: to('d'), d: asks })
    const task = await net.until(peer('a').submit(JOB.once, { n: 1 }, { agent: 'b' }))
    expect((await net.until(follow(task))).told.at(-1)).toBe('end completed')
    expect(await net.until(task.result())).toEqual({ by: 'c', n: 1 })
    expect([task.agent, started.at(-1)?.ctx.via]).toEqual(['d', ['b', 'c']])
  })

  it('F-34 that may not be handed on is not: TTL_EXPIRED with the path, in the name of who had it', async () => {
    const { net, peer, started } = await taskLine('abc', { b: to('c'), c: asks })
    const task = await net.until(peer('a').submit(JOB.none, { n: 1 }, { agent: 'b', maxHops: 0 }))
    const error = await net.until(task.result().catch((thrown: unknown) => thrown))
    expect(error).toMatchObject({ code: 'TTL_EXPIRED', details: { path: ['a', 'b'], max_hops: 0 } })
    expect(started.map(({ by }) => by)).toEqual(['b'])
  })

  it('F-34 back to where it has been is a loop: CALL_CYCLE with the path', async () => {
    const { net, peer, started } = await taskLine('abc', { b: to('c'), c: to('b') })
    const task = await net.until(peer('a').submit(JOB.none, { n: 1 }, { agent: 'b' }))
    const error = await net.until(task.result().catch((thrown: unknown) => thrown))
    expect(error).toMatchObject({ code: 'CALL_CYCLE', details: { path: ['a', 'b', 'c', 'b'] } })
    expect(started.map(({ by }) => by)).toEqual(['b', 'c'])
  })

  it('to an agent that refuses it: the handler hears why, and may end it itself', async () => {
    const codes: string[] = []
    const b: Does = async ({ n }, ctx) => {
      try {
        return await ctx.forward('c')
      } catch (error) {
        codes.push((error as { code: string }).code)
        return { by: 'b', n }
      }
    }
    const { net, peer } = await taskLine('abc', { b, c: asks }, { tuning: { c: { tasksPerOwner: 1 } } })
    // c keeps as many tasks of a as it may.
    await net.until(untilAsked(await net.until(peer('a').submit(JOB.none, { n: 1 }, { agent: 'b' }))))
    const task = await net.until(peer('a').submit(JOB.none, { n: 2 }, { agent: 'b' }))
    expect(await net.until(task.result())).toEqual({ by: 'b', n: 2 })
    expect(codes).toEqual(['BUSY'])
    expect(task.agent).toBe('b')
  })

  it('while nobody knows whether the next agent has it: a cancel ends nothing, and once that is known it ends the task there', async () => {
    let deaf = true
    const { net, peer, started, code, until, of } = await taskLine(
      'abc',
      { b: to('c'), c: gated('c').does },
      { lose: (from, dest, header) => deaf && from === 'c' && dest === 'b' && header.message_type === 'ack' },
    )
    const task = await net.until(peer('a').submit(JOB.once, { n: 1 }, { agent: 'b' }))
    await until(() => started.length === 2, 'the handler of the next agent')
    expect(await code(task.cancel({ timeoutMs: 5000 }))).toBe('TIMEOUT')
    expect(of('b', 'task.handed')).toEqual([])
    deaf = false
    expect(await net.until(task.cancel())).toBe('cancelled')
    expect(started[1]?.ctx.signal.aborted).toBe(true)
  })

  it('gets no more time than it is given', async () => {
    const { net, peer, started, code, of } = await taskLine('abc', {
      b: (_, ctx) => ctx.forward('c', { timeoutMs: 20_000 }),
      c: gated('c').does,
    })
    const since = net.timeline.now()
    const task = await net.until(peer('a').submit(JOB.once, { n: 1 }, { agent: 'b' }))
    expect(await code(task.result())).toBe('TIMEOUT')
    expect(net.timeline.now() - since).toBeLessThan(22_000)
    expect(started[1]?.ctx.remainingMs()).toBe(0)
    expect(of('c', 'task.state').at(-1)).toMatchObject({ state: 'failed', code: 'TIMEOUT' })
  })

  it.each([
    ['once', 'INVALID_OPTION', ['b', 'c']],
    ['none', 'OK', ['b', 'c', 'd']],
  ] as const)('with effects %s, to another agent while one may have it: %s', async (effects, second, all) => {
    const codes: string[] = []
    const b: Does = async ({ n }, ctx) => {
      for (const next of ['c', 'd']) {
        try {
          const given = await ctx.forward(next, { timeoutMs: 8000 })
          codes.push('OK')
          return given
        } catch (error) {
          codes.push((error as { code: string }).code)
        }
      }
      return { by: 'b', n }
    }
    const { net, peer, started } = await taskLine(
      'abcd',
      { b, c: gated('c').does, d: async ({ n }) => ({ by: 'd', n }) },
      { also: ['bd'], lose: (from, to, header) => from === 'c' && to === 'b' && header.message_type === 'ack' },
    )
    const task = await net.until(peer('a').submit(JOB[effects] as typeof JOB.none, { n: 1 }, { agent: 'b' }))
    expect(await net.until(task.result())).toEqual({ by: effects === 'once' ? 'b' : 'd', n: 1 })
    expect(codes).toEqual(['TIMEOUT', second])
    expect(started.map(({ by }) => by)).toEqual(all)
  })

  it('to an agent that is not there: waited for, and when the time is over without it having been sent, free for another', async () => {
    const codes: string[] = []
    const b: Does = async (_, ctx) => {
      try {
        return await ctx.forward('c', { timeoutMs: 5000 })
      } catch (error) {
        codes.push((error as { code: string }).code)
        return ctx.forward('d')
      }
    }
    const does = async ({ n }: { n: number }) => ({ by: 'end', n })
    const { net, peer, started, launch } = await taskLine('abcd', { b, c: does, d: does }, { also: ['bd'] })
    await net.crash('c')
    await net.advance('10s')
    const task = await net.until(peer('a').submit(JOB.once, { n: 1 }, { agent: 'b' }))
    expect(await net.until(task.result())).toEqual({ by: 'end', n: 1 })
    expect(codes).toEqual(['PEER_UNREACHABLE'])
    const other = await net.until(peer('a').submit(JOB.once, { n: 2 }, { agent: 'b' }))
    await net.advance('1s')
    await launch('c')
    expect(await net.until(other.result())).toEqual({ by: 'end', n: 2 })
    expect(started.map(({ by }) => by)).toEqual(['b', 'd', 'b', 'c'])
  })

  it('is not at two agents when its handler does not wait for the handing-on', async () => {
    const { net, peer, started } = await taskLine('abc', {
      b: async ({ n }, ctx) => {
        void ctx.forward('c')
        return { by: 'b', n }
      },
      c: async ({ n }) => ({ by: 'c', n }),
    })
    const task = await net.until(peer('a').submit(JOB.none, { n: 1 }, { agent: 'b' }))
    expect(await net.until(task.result())).toEqual({ by: 'c', n: 1 })
    expect(started.map(({ by }) => by)).toEqual(['b', 'c'])
  })
})

describe('F-34 delegation loops and growing graphs: tasks', () => {
  it.each([
    ['3', 'abcd'],
    ['6', 'abcdefg'],
  ])('a ring of %s that hands on to whoever else offers it ends, with an error to the owner', async (_, names) => {
    const ring = [...names].slice(1)
    const also = ring.flatMap((one) => ring.map((other) => `${one}${other}`))
    const codes: string[] = []
    const on: Does = async (_, ctx) => {
      try {
        return await ctx.forward(JOB.none)
      } catch (error) {
        codes.push((error as { code: string }).code)
        throw error
      }
    }
    const serve = Object.fromEntries(ring.map((id) => [id, on]))
    const { net, peer, started, code } = await taskLine(names, serve, { also })
    const task = await net.until(peer('a').submit(JOB.none, { n: 1 }, { agent: 'b' }))
    expect(['HANDLER_ERROR', 'TTL_EXPIRED']).toContain(await code(task.result()))
    expect(codes).toHaveLength(1)
    expect(['NO_CANDIDATE', 'TTL_EXPIRED']).toContain(codes[0])
    const by = started.map((one) => one.by)
    expect(new Set(by).size).toBe(by.length)
    expect(by.length).toBeLessThanOrEqual(5)
  })
})

describe('F-35 mutual waiting: tasks', () => {
  it('a waiting cycle of three agents is refused with the path, though one of them only handed on', async () => {
    const causes: unknown[] = []
    // a waits for a task of b, who hands it on to c, who waits for a task of a.
    const asking =
      (self: string, agent: string, contract: typeof JOB.none): Does =>
      async ({ n }) => {
        try {
          return await (await scene.peer(self).submit(contract, { n }, { agent })).result()
        } catch (error) {
          causes.push(error)
          throw error
        }
      }
    const scene = await taskLine(
      'abc',
      { a: asking('a', 'b', JOB.once as unknown as typeof JOB.none), b: to('c'), c: asking('c', 'a', JOB.none) },
      { also: ['ac'] },
    )
    const task = await scene.net.until(scene.peer('b').submit(JOB.none, { n: 1 }, { agent: 'a' }))
    expect(await scene.code(task.result())).toBe('HANDLER_ERROR')
    expect(causes[0]).toMatchObject({
      code: 'CALL_CYCLE',
      details: { path: ['a#job-none', 'c#job-once', 'a#job-none'] },
    })
  })
})

describe('a restart', () => {
  /** a → b → c, where c has begun. */
  async function begun(more: Parameters<typeof taskLine>[2] = {}, contract: (typeof JOB)['none' | 'once'] = JOB.none) {
    const gate = gated('c')
    const scene = await taskLine('abc', { b: to('c'), c: gate.does }, more)
    const task = await scene.net.until(scene.peer('a').submit(contract as typeof JOB.none, { n: 1 }, { agent: 'b' }))
    await scene.until(() => scene.started.length === 2, 'the handler of the next agent')
    return { ...scene, task, open: gate.open }
  }

  it('of the agent that has it: it runs again from its journal, and the watch goes on', async () => {
    const { net, restart, task, open, started, of } = await begun()
    const watching = follow(task)
    await net.advance('1s')
    await restart('c')
    open()
    expect((await net.until(watching)).told.at(-1)).toBe('end completed')
    expect(await net.until(task.result())).toEqual({ by: 'c', n: 1 })
    expect(started.map(({ by }) => by)).toEqual(['b', 'c', 'c'])
    expect(started[2]?.ctx).toMatchObject({ caller: 'a', via: ['b'] })
    expect(of('a', 'task.resumed').length).toBeGreaterThan(0)
  })

  it('of the agent that has it, with effects once: interrupted, and told along the way', async () => {
    const { restart, task, code, started } = await begun({}, JOB.once)
    const result = task.result()
    result.catch(() => undefined)
    await restart('c')
    expect(await code(result)).toBe('TASK_INTERRUPTED')
    expect(started.map(({ by }) => by)).toEqual(['b', 'c'])
  })

  it('of the agent in the middle: it knows from its journal where the task is, and starts nothing', async () => {
    const { net, restart, task, open, started } = await begun({}, JOB.once)
    const watching = follow(task)
    await net.advance('1s')
    await restart('b')
    open()
    expect((await net.until(watching)).told.at(-1)).toBe('end completed')
    expect(started.map(({ by }) => by)).toEqual(['b', 'c'])
  })

  it('of the owner: it finds the task by its id, by the way that its journal keeps', async () => {
    const { net, peer, restart, task, open } = await begun()
    const { id } = task
    await restart('a')
    const found = peer('a').task(JOB.none, id)
    open()
    expect((await net.until(follow(found))).told.at(-1)).toBe('end completed')
    expect(await net.until(found.result())).toEqual({ by: 'c', n: 1 })
    expect(found.agent).toBe('c')
  })

  it('of all three, one after another', async () => {
    const { net, peer, restart, task, open } = await begun()
    for (const id of 'cba') await restart(id)
    open()
    expect(await net.until(peer('a').task(JOB.none, task.id).result())).toEqual({ by: 'c', n: 1 })
  })

  it('of the agent in the middle while it hands on: it goes on with the same agent, also where effects are once', async () => {
    // What c says is lost: b cannot know whether c has it.
    let deaf = true
    const { net, peer, restart, until, started, of } = await taskLine(
      'abc',
      { b: to('c'), c: async ({ n }) => ({ by: 'c', n }) },
      { lose: (from, dest, header) => deaf && from === 'c' && dest === 'b' && header.message_type === 'ack' },
    )
    const task = await net.until(peer('a').submit(JOB.once, { n: 1 }, { agent: 'b' }))
    await until(() => of('c', 'task.joined').length > 0, 'the same once more')
    expect((await net.until(task.status())).state).toBe('working')
    expect(of('b', 'task.handed')).toEqual([])
    await restart('b')
    await until(() => of('c', 'task.joined').length > 2, 'the same from the next life')
    deaf = false
    expect(await net.until(task.result())).toEqual({ by: 'c', n: 1 })
    expect(started.map(({ by }) => by)).toEqual(['b', 'c'])
    expect(of('b', 'task.handed')).toHaveLength(1)
  })

  it('of the agent in the middle without a journal: TASK_NOT_FOUND, not a wait without end', async () => {
    const { net, restart, task, code, open } = await begun({ memory: 'b' })
    open()
    await restart('b')
    await net.advance('1s')
    expect(await code(task.result())).toBe('TASK_NOT_FOUND')
  })
})

describe('the agent in the middle is lost', () => {
  async function begun(more: Parameters<typeof taskLine>[2] = {}) {
    const gate = gated('c')
    const scene = await taskLine('abc', { b: to('c'), c: gate.does }, more)
    const task = await scene.net.until(scene.peer('a').submit(JOB.none, { n: 1 }, { agent: 'b' }))
    await scene.until(() => scene.started.length === 2, 'the handler of the next agent')
    await scene.net.until(task.status())
    return { ...scene, task, open: gate.open }
  }

  it('for good: a wait ends by its own time with a typed error, and the task itself goes on', async () => {
    const { net, task, code, started, open, launch } = await begun()
    await net.crash('b')
    expect(await code(task.status())).toBe('TIMEOUT')
    expect(await code(task.result({ timeoutMs: 30_000 }))).toBe('TIMEOUT')
    expect(started[1]?.ctx.signal.aborted).toBe(false)
    open()
    await launch('b')
    expect(await net.until(task.result())).toEqual({ by: 'c', n: 1 })
  })

  it('and the owner can reach the agent that has it: it is asked directly', async () => {
    const { net, task, open } = await begun({ also: ['ac'] })
    const result = task.result()
    await net.crash('b')
    open()
    expect(await net.until(result)).toEqual({ by: 'c', n: 1 })
    expect(await net.until(task.cancel())).toBe('completed')
  })

  it('for a moment, on either side: the watch goes on where it was', async () => {
    const { net, task, open, peer } = await begun()
    const watching = follow(task)
    for (const [one, other] of ['ab', 'bc']) {
      net.faults.cut(net.peerId(one as string), net.peerId(other as string), { afterBytes: 0 })
      await net.advance('3s')
    }
    open()
    const { told } = await net.until(watching)
    expect(told.filter((one) => one === 'state working').length).toBeLessThanOrEqual(2)
    expect(told.at(-1)).toBe('end completed')
    expect(peer('a').balance().failed).toBe(0)
  })
})

describe('whoever does not own it', () => {
  it('learns and ends nothing, whichever of the agents it asks', async () => {
    const { net, peer, code, until, started } = await taskLine(
      'abcd',
      { b: to('c'), c: gated('c').does },
      { also: ['bd'] },
    )
    const task = await net.until(peer('a').submit(JOB.none, { n: 1 }, { agent: 'b' }))
    await until(() => started.length === 2, 'the handler of the next agent')
    for (const agent of ['b', 'c']) {
      const stolen = peer('d').task(JOB.none, task.id, { agent })
      expect([agent, await code(stolen.status())]).toEqual([agent, 'TASK_NOT_FOUND'])
      expect([agent, await code(stolen.result())]).toEqual([agent, 'TASK_NOT_FOUND'])
      // A task of its own of that name, which there will never be.
      expect(await net.until(stolen.cancel())).toBe('cancelled')
    }
    // Nor does the agent that has handed it on own it.
    expect(await code(peer('b').task(JOB.none, task.id, { agent: 'c' }).status())).toBe('TASK_NOT_FOUND')
    expect(started[1]?.ctx.signal.aborted).toBe(false)
    expect((await net.until(task.status())).state).toBe('working')
  })
})

describe('what the agent in the middle keeps', () => {
  it('counts in the share of the owner, and is forgotten once the end has passed and room is needed', async () => {
    const gate = gated('c')
    const { net, peer, until, started, code } = await taskLine(
      'abc',
      { b: to('c'), c: gate.does },
      { tuning: { b: { tasksPerOwner: 2 }, c: { tasksPerOwner: 2 } } },
    )
    const submit = () => peer('a').submit(JOB.none, { n: 1 }, { agent: 'b', timeoutMs: 2000 })
    const first = await net.until(submit())
    await net.until(submit())
    await until(() => started.filter(({ by }) => by === 'c').length === 2, 'both at the next agent')
    expect(await code(submit())).toBe('BUSY')
    gate.open()
    await net.until(first.result())
    // b has seen its end pass, and takes another one; c remembers what may be handed to it again, and refuses.
    const third = await net.until(submit())
    expect(await code(third.result())).toBe('BUSY')
    expect(await code(first.status())).toBe('TASK_NOT_FOUND')
  })

  it('is the way, for a day (here a minute) after the longest that the task may take, and no longer', async () => {
    const { net, peer, code } = await taskLine(
      'abc',
      { b: to('c'), c: async ({ n }) => ({ by: 'c', n }) },
      { tuning: { b: { taskBudgetMs: 60_000, taskKeptMs: 60_000 } } },
    )
    const task = await net.until(peer('a').submit(JOB.none, { n: 1 }, { agent: 'b' }))
    expect(await net.until(task.result())).toEqual({ by: 'c', n: 1 })
    await net.advance('100s')
    expect((await net.until(task.status())).state).toBe('completed')
    await net.advance('35s')
    expect(await code(task.status())).toBe('TASK_NOT_FOUND')
  })
})

/** What is known of it once it asks. */
async function untilAsked(task: Awaited<ReturnType<ReturnType<TaskLine['peer']>['submit']>>) {
  for await (const update of task.updates()) if (update.type === 'question') break
  return task.status() as Promise<import('../../src/api.ts').TaskStatus<typeof JOB.none>>
}
