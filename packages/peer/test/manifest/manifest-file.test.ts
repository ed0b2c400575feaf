import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type HermesError, isHermesError } from '@hermes-peer/protocol'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseManifest, readManifest } from '../../src/manifest/manifest-file.ts'
import { readOptions } from '../../src/options.ts'

const SOUND = `# 日志助手
agent_id: team/log-insight
description: 日志分析
listen: [/ip4/127.0.0.1/tcp/0]
capabilities:
  - name: log_anomaly_detect
    description: Finds unusual templates in lines of a server log and counts them.
    effects: none
    input_schema: &lines
      type: object
      properties: { lines: { type: array, items: { type: string } } }
      required: [lines]
    output_schema: { type: array }
    constraints: { max_concurrency: 4, budget_ms: 60000, cost_level: 2, p99_ms: 800 }
    labels: { language: [zh, en], data_domain: logs }
    negative_capabilities: [不处理工单]
  - name: log_tail
    description: Streams new lines of a log as they come.
    call_type: stream
    input_schema: *lines
    output_schema: { type: 'null' }
    yields_schema: { type: string }
`

const refused = (text: string): HermesError => {
  try {
    parseManifest(text, 'agent.yaml')
  } catch (error) {
    if (isHermesError(error)) return error
    throw error
  }
  throw new Error('it was accepted')
}

describe('a manifest file', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'hermes-manifest-'))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('gives options and contracts', () => {
    const { options, capabilities } = parseManifest(SOUND, 'agent.yaml')
    expect(options).toEqual({
      agentId: 'team/log-insight',
      description: '日志分析',
      listen: ['/ip4/127.0.0.1/tcp/0'],
    })
    expect(readOptions(options).agentId).toBe('team/log-insight')
    expect(Object.keys(capabilities)).toEqual(['log_anomaly_detect', 'log_tail'])
    expect(capabilities.log_anomaly_detect).toMatchObject({
      effects: 'none',
      labels: { language: ['zh', 'en'], data_domain: 'logs' },
      constraints: { maxConcurrency: 4, budgetMs: 60_000, costLevel: 2, p99Ms: 800 },
      negativeCapabilities: ['不处理工单'],
    })
    expect(capabilities.log_tail?.jsonSchemas).toMatchObject({
      input: { required: ['lines'] },
      yields: { type: 'string' },
    })
  })

  it('says the same as JSON, with a byte order mark and with line ends of Windows', () => {
    const { options, capabilities } = parseManifest(SOUND, 'agent.yaml')
    const path = join(folder, 'agent.json')
    const entries = Object.values(capabilities).map(({ name, description, jsonSchemas }) => ({
      name,
      description,
      input_schema: jsonSchemas.input,
      output_schema: jsonSchemas.output,
    }))
    const json = JSON.stringify({ agent_id: options.agentId, capabilities: entries }, null, 2)
    writeFileSync(path, `\uFEFF${json.replaceAll('\n', '\r\n')}`)
    const again = readManifest(path)
    expect(again.options).toEqual({ agentId: 'team/log-insight' })
    expect(again.capabilities.log_tail?.jsonSchemas.input).toEqual(capabilities.log_tail?.jsonSchemas.input)
  })

  it('needs no capabilities', () => {
    expect(parseManifest('agent_id: pm', 'x')).toEqual({ options: { agentId: 'pm' }, capabilities: {} })
  })

  it.each<[string, string, string, RegExp]>([
    ['no YAML', 'agent_id: [pm', '', /^agent\.yaml: .*line 1/],
    ['a key twice', 'agent_id: pm\nagent_id: pm2\n', '', /unique.*line 2/i],
    ['nothing', '', '', /must be an object of agent_id/],
    ['a list', '- agent_id: pm', '', /must be an object/],
    ['no agent id', 'description: x', '', /needs an agent_id/],
    [
      'an unknown field',
      'agent_id: pm\ncapability: []\n',
      'capability',
      /^agent\.yaml:2: capability is not a field.*capabilities/,
    ],
    [
      'capabilities by name',
      'agent_id: pm\ncapabilities: {a: 1}\n',
      'capabilities',
      /^agent\.yaml:2: .*must be a list/,
    ],
    [
      'a capability that is a text',
      'agent_id: pm\ncapabilities:\n  - a\n',
      'capabilities.0',
      /^agent\.yaml:3: .*not an object/,
    ],
    [
      'a bound that is none',
      SOUND.replace('cost_level: 2', 'cost_level: 9'),
      'capabilities.0.constraints.cost_level',
      /^agent\.yaml:14: .*cost_level.*1 to 5/,
    ],
    [
      'a schema that is broken',
      SOUND.replace('{ type: array }', '{ type: arrays }'),
      'capabilities.0.output_schema.type',
      /^agent\.yaml:13: .*output_schema\.type|^agent\.yaml:13: .*output_schema\/type/,
    ],
    [
      'a capability twice',
      SOUND.replace('log_tail', 'log_anomaly_detect'),
      'capabilities.1.name',
      /^agent\.yaml:17: .*repeats log_anomaly_detect/,
    ],
    ['a name of the runtime', SOUND.replace('log_tail', 'hermes.flight'), 'capabilities.1', /hermes\./],
  ])('refuses %s, naming line and field', (_, text, field, message) => {
    const error = refused(text)
    expect(error.code).toBe('INVALID_MANIFEST_FILE')
    expect(error.message).toMatch(message)
    expect(error.details.field ?? '').toBe(field)
  })

  it('stops aliases that multiply', () => {
    const bomb = `agent_id: pm\na: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefghi'
      .split('')
      .map((name, at) => `${name}: &${name} [${Array(9).fill(`*${'abcdefghi'[at]}`).join(',')}]`)
      .join('\n')}\n`
    expect(refused(bomb).message).toMatch(/alias/i)
  })

  it('refuses a file that is not there, not UTF-8, or too large', () => {
    const path = join(folder, 'wrong.yaml')
    const failure = () => {
      try {
        return readManifest(path)
      } catch (error) {
        return error as HermesError
      }
    }
    expect(failure()).toMatchObject({ code: 'INVALID_MANIFEST_FILE', message: expect.stringContaining('ENOENT') })
    writeFileSync(path, Buffer.from([0x61, 0xff, 0x0a]))
    expect(failure()).toMatchObject({ code: 'INVALID_MANIFEST_FILE', message: expect.stringContaining('UTF-8') })
    writeFileSync(path, 'x'.repeat(1024 * 1024 + 1))
    expect(failure()).toMatchObject({ code: 'INVALID_MANIFEST_FILE', message: expect.stringContaining('bytes') })
  })
})
