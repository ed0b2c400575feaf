import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { capability } from '@hermes-peer/protocol'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { temporaryFolder } from '../identity/support.ts'
import { agents, pay } from './scene.ts'

/** One at a time: a second one waits in line. */
const slow = capability('slow', {
  description: 'Takes long.',
  input: z.object({ amount: z.number() }),
  output: z.object({ by: z.string() }),
  constraints: { maxConcurrency: 1 },
})

const rules = (max: number) => `serve:
  - principal: pm
    capability: pay
    constraints: { /amount: { max: ${max} } }
`

async function following(text: string, serve = {}) {
  const path = join(temporaryFolder(), 'policy.yaml')
  writeFileSync(path, text)
  const scene = await agents(
    { ledger: undefined, pm: undefined },
    { options: { ledger: { policy: path } }, serve: { ledger: () => undefined, ...serve } },
  )
  /** As editors do it: another file takes its place. */
  const replace = async (content: string) => {
    writeFileSync(`${path}.new`, content)
    renameSync(`${path}.new`, path)
    await scene.net.advance('3s')
  }
  return { ...scene, replace, ask: (amount: number) => scene.peer('pm').call(pay, { amount }, { agent: 'ledger' }) }
}

describe('a policy that changes while it counts', () => {
  it('is followed by a running peer; a broken one changes nothing, and is told', async () => {
    const { net, ask, failure, replace, of } = await following(rules(10))
    expect(await net.until(ask(10))).toEqual({ by: 'ledger' })
    await replace(rules(5))
    expect((await failure(ask(10))).code).toBe('POLICY_DENIED')
    await replace('serve:\n  - principal: pm\n')
    expect(of('ledger', 'policy.failed')).toMatchObject([{ reason: expect.stringContaining('policy.yaml:2') }])
    expect(await net.until(ask(5))).toEqual({ by: 'ledger' })
    expect((await failure(ask(10))).code).toBe('POLICY_DENIED')
    expect(of('ledger', 'policy.loaded').map(({ again }) => again)).toEqual([false, true])
  })

  it('is asked again before a task is started that it has let in', async () => {
    const gates: (() => void)[] = []
    const hold = () => new Promise((resolve) => gates.push(() => resolve({ by: 'ledger' })))
    const path = join(temporaryFolder(), 'policy.yaml')
    const { net, peer, failure } = await agents({ pm: undefined })
    writeFileSync(path, rules(10).replace('pay', 'slow'))
    await net.until(net.launch('ledger', (one) => void one.provide(slow, hold as never), { policy: path }))
    await net.advance('25s')
    const first = await net.until(peer('pm').submit(slow, { amount: 1 }, { agent: 'ledger' }))
    const second = await net.until(peer('pm').submit(slow, { amount: 10 }, { agent: 'ledger' }))
    writeFileSync(path, rules(5).replace('pay', 'slow'))
    await net.advance('3s')
    gates[0]?.()
    expect(await net.until(first.result())).toEqual({ by: 'ledger' })
    expect((await failure(second.result())).code).toBe('POLICY_DENIED')
    expect(gates).toHaveLength(1)
  })
})
