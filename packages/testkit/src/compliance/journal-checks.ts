import assert from 'node:assert/strict'
import type { Journal, JournalLimits, JournalTable } from 'hermes-peer'

type Make = (limits?: Partial<JournalLimits>) => Journal

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const put = (key: string, value: string, table: JournalTable = 'tasks') => ({ table, key, value: bytes(value) })
const remove = (key: string, table: JournalTable = 'tasks') => ({ table, key, value: undefined })

async function text(journal: Journal, key: string, table: JournalTable = 'tasks'): Promise<string | undefined> {
  const value = await journal.get(table, key)
  return value && new TextDecoder().decode(value)
}

async function all(journal: Journal, table: JournalTable, prefix?: string): Promise<[string, string][]> {
  const found: [string, string][] = []
  for await (const [key, value] of journal.entries(table, prefix)) found.push([key, new TextDecoder().decode(value)])
  return found
}

async function opened(make: Make, limits?: Partial<JournalLimits>): Promise<Journal> {
  const journal = make(limits)
  await journal.open()
  return journal
}

const refusedWith = (code: string, message: RegExp) => (error: { code?: string; message: string; hint?: string }) => {
  assert.equal(error.code, code, error.message)
  assert.match(error.message, message)
  assert.ok(error.hint, 'no hint')
  return true
}

/** Many more than any page. */
const MANY = 700

export const JOURNAL_CHECKS: Readonly<Record<string, (make: Make) => Promise<void>>> = {
  async 'gives back what was committed, and nothing for what was not'(make) {
    const journal = await opened(make)
    await journal.commit([put('a', 'one'), put('b', '')])
    assert.equal(await text(journal, 'a'), 'one')
    assert.equal(await text(journal, 'b'), '')
    assert.equal(await text(journal, 'c'), undefined)
    assert.equal(await text(journal, 'a', 'marks'), undefined)
  },

  async 'keeps every byte'(make) {
    const journal = await opened(make)
    const value = Uint8Array.from({ length: 70_000 }, (_, i) => (i * 7 + (i >> 8)) & 0xff)
    await journal.commit([{ table: 'updates', key: 'x', value }])
    assert.deepEqual(new Uint8Array((await journal.get('updates', 'x')) ?? []), value)
  },

  async 'removes, and takes the last change of a key in one commit'(make) {
    const journal = await opened(make)
    await journal.commit([put('a', 'one'), put('b', 'one')])
    await journal.commit([remove('a'), put('b', 'two'), put('b', 'three'), remove('never-there')])
    assert.equal(await text(journal, 'a'), undefined)
    assert.equal(await text(journal, 'b'), 'three')
    await journal.commit([put('a', 'again'), remove('b')])
    assert.deepEqual(await all(journal, 'tasks'), [['a', 'again']])
  },

  async 'keeps the order of the commits of one turn'(make) {
    const journal = await opened(make)
    const order: number[] = []
    await Promise.all(
      Array.from({ length: 50 }, async (_, number) => {
        await journal.commit([put('last', String(number)), put(`each-${number}`, 'x')])
        order.push(number)
      }),
    )
    assert.equal(await text(journal, 'last'), '49')
    assert.equal((await all(journal, 'tasks', 'each-')).length, 50)
    assert.deepEqual(
      order,
      [...order].sort((a, b) => a - b),
    )
  },

  async 'takes commits while one is on its way, in order'(make) {
    const journal = await opened(make)
    const first = journal.commit([put('k', '1')])
    await new Promise((resolve) => setImmediate(resolve))
    const second = journal.commit([put('k', '2')])
    await new Promise((resolve) => setImmediate(resolve))
    const third = journal.commit([put('k', '3')])
    await Promise.all([first, second, third])
    assert.equal(await text(journal, 'k'), '3')
  },

  async 'has stored it when the commit resolves, not before'(make) {
    const journal = await opened(make)
    await journal.commit([put('k', 'old')])
    const commit = journal.commit([put('k', 'new')])
    assert.equal(await text(journal, 'k'), 'old')
    await commit
    assert.equal(await text(journal, 'k'), 'new')
  },

  async 'resolves an empty commit behind those before it'(make) {
    const journal = await opened(make)
    const before = journal.commit([put('k', 'v')])
    await journal.commit([])
    assert.equal(await text(journal, 'k'), 'v')
    await before
  },

  async 'tells entries in the order of their keys, by table and prefix'(make) {
    const journal = await opened(make)
    const keys = ['b', 'a', 'a/2', 'a/10', 'a/', 'a~', 'A', '~', 'a b', 'ab']
    await journal.commit([...keys.map((key) => put(key, key)), put('a', 'mark', 'marks'), put('a', 'pin', 'pins')])
    const sorted = [...keys].sort()
    assert.deepEqual(
      await all(journal, 'tasks'),
      sorted.map((key) => [key, key]),
    )
    assert.deepEqual(
      await all(journal, 'tasks', 'a/'),
      sorted.filter((key) => key.startsWith('a/')).map((key) => [key, key]),
    )
    assert.deepEqual(await all(journal, 'tasks', 'a/10'), [['a/10', 'a/10']])
    assert.deepEqual(await all(journal, 'tasks', 'nothing'), [])
    assert.deepEqual(await all(journal, 'marks'), [['a', 'mark']])
    assert.deepEqual(await all(journal, 'outbox'), [])
  },

  async 'tells many entries, each once, while others come and go'(make) {
    const journal = await opened(make)
    const key = (number: number) => `k${String(number).padStart(4, '0')}`
    await journal.commit(Array.from({ length: MANY }, (_, number) => put(key(number), String(number))))
    const seen: string[] = []
    for await (const [name] of journal.entries('tasks', 'k')) {
      seen.push(name)
      if (seen.length === 10)
        await journal.commit([remove(key(5)), put('k9999', 'late'), put('l', 'not of the prefix')])
    }
    const stayed = Array.from({ length: MANY }, (_, number) => key(number))
    assert.deepEqual(
      seen.filter((name) => name !== 'k9999'),
      stayed,
    )
    assert.equal((await all(journal, 'tasks', 'k')).length, MANY)
  },

  async 'has bytes of its own'(make) {
    const journal = await opened(make)
    const mine = bytes('mine')
    const commit = journal.commit([{ table: 'tasks', key: 'k', value: mine }])
    mine.fill(0)
    await commit
    ;(await journal.get('tasks', 'k'))?.fill(1)
    for await (const [, value] of journal.entries('tasks')) value.fill(2)
    assert.equal(await text(journal, 'k'), 'mine')
  },

  async 'refuses what is no table, key or value, and nothing of that commit is stored'(make) {
    const journal = await opened(make, { journalValueBytes: 1000 })
    const wrong: [object, string, RegExp][] = [
      [{ table: 'tusks', key: 'k', value: bytes('v') }, 'INVALID_OPTION', /table "tusks".*tasks/],
      [{ table: 'tasks', key: '', value: bytes('v') }, 'INVALID_OPTION', /key.*1 to 256 printable ASCII/],
      [{ table: 'tasks', key: 'k'.repeat(257), value: bytes('v') }, 'INVALID_OPTION', /key/],
      [{ table: 'tasks', key: 'a\nb', value: bytes('v') }, 'INVALID_OPTION', /key/],
      [{ table: 'tasks', key: 'é', value: bytes('v') }, 'INVALID_OPTION', /key/],
      [{ table: 'tasks', key: 5, value: bytes('v') }, 'INVALID_OPTION', /key/],
      [{ table: 'tasks', key: 'k', value: 'text' }, 'INVALID_OPTION', /value of tasks k must be bytes/],
      [{ table: 'tasks', key: 'k', value: null }, 'INVALID_OPTION', /value/],
      [{ table: 'tasks', key: 'k', value: new Uint8Array(1001) }, 'LIMIT_EXCEEDED', /tasks k has 1001 bytes.*1000/],
    ]
    for (const [change, code, message] of wrong) {
      await assert.rejects(journal.commit([put('good', 'v'), change as never]), refusedWith(code, message))
    }
    assert.equal(await text(journal, 'good'), undefined)
    await assert.rejects(journal.get('tasks', ''), refusedWith('INVALID_OPTION', /key/))
    await assert.rejects(all(journal, 'tusks' as never), refusedWith('INVALID_OPTION', /table/))
    await assert.rejects(all(journal, 'tasks', 'é'), refusedWith('INVALID_OPTION', /key/))
    await journal.commit([{ table: 'tasks', key: 'k'.repeat(256), value: new Uint8Array(1000) }])
  },

  async 'refuses with QUEUE_FULL what would wait beyond the limits, and goes on'(make) {
    const journal = await opened(make, { journalWaitingCommits: 3, journalWaitingBytes: 10_000 })
    const many = await Promise.allSettled(['1', '2', '3', '4', '5'].map((key) => journal.commit([put(key, 'v')])))
    assert.deepEqual(
      many.map(({ status }) => status),
      ['fulfilled', 'fulfilled', 'fulfilled', 'rejected', 'rejected'],
    )
    refusedWith('QUEUE_FULL', /3 commits/)((many[3] as PromiseRejectedResult).reason)
    const large = { table: 'tasks', key: 'large', value: new Uint8Array(6000) } as const
    const two = await Promise.allSettled([journal.commit([large]), journal.commit([large])])
    assert.deepEqual(
      two.map(({ status }) => status),
      ['fulfilled', 'rejected'],
    )
    refusedWith('QUEUE_FULL', /bytes wait/)((two[1] as PromiseRejectedResult).reason)
    await assert.rejects(journal.commit([large, large]), refusedWith('LIMIT_EXCEEDED', /limit is 10000/))
    await journal.commit([put('after', 'v')])
    assert.deepEqual(
      (await all(journal, 'tasks')).map(([key]) => key),
      ['1', '2', '3', 'after', 'large'],
    )
  },

  async 'is not there before open'(make) {
    const journal = make()
    await assert.rejects(journal.commit([put('k', 'v')]), refusedWith('NOT_STARTED', /not open/))
    await assert.rejects(journal.get('tasks', 'k'), refusedWith('NOT_STARTED', /not open/))
    await assert.rejects(all(journal, 'tasks'), refusedWith('NOT_STARTED', /not open/))
    await Promise.all([journal.open(), journal.open()])
    await journal.open()
    await journal.commit([put('k', 'v')])
  },

  async 'closes behind what is on its way, and is not there any more'(make) {
    const journal = await opened(make)
    const commits = [journal.commit([put('a', '1')]), journal.commit([put('b', '2')])]
    const closed = journal.close()
    await assert.rejects(journal.commit([put('c', '3')]), refusedWith('STOPPED', /closed/))
    await closed
    await Promise.all(commits)
    await journal.close()
    await assert.rejects(journal.get('tasks', 'a'), refusedWith('STOPPED', /closed/))
    await assert.rejects(all(journal, 'tasks'), refusedWith('STOPPED', /closed/))
    await assert.rejects(journal.open(), refusedWith('STOPPED', /closed/))
  },

  async 'can be closed without having been opened'(make) {
    const journal = make()
    await journal.close()
    await assert.rejects(journal.open(), refusedWith('STOPPED', /closed/))
  },

  async 'finds all of it in the next life, when it is durable; else nothing'(make) {
    const first = await opened(make)
    await first.commit([put('a', '1'), put('b', '2')])
    await first.commit([remove('a'), put('c', '3', 'pins')])
    await first.close()
    const second = await opened(make)
    assert.equal(second.durable, first.durable)
    assert.deepEqual(await all(second, 'tasks'), first.durable ? [['b', '2']] : [])
    assert.deepEqual(await all(second, 'pins'), first.durable ? [['c', '3']] : [])
  },

  async 'is open once at a time, when it is durable'(make) {
    const first = await opened(make)
    const second = make()
    if (!first.durable) return second.open()
    await assert.rejects(second.open(), refusedWith('JOURNAL_LOCKED', /open/))
    await first.commit([put('k', 'v')])
    await first.close()
    await second.open()
    assert.equal(await text(second, 'k'), 'v')
  },
}
