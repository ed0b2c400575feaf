import { manualClock } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { createLedger } from '../../src/telemetry/balance.ts'
import { logMessages, type MessageLogLine } from '../../src/telemetry/message-log.ts'
import { createTelemetry } from '../../src/telemetry/telemetry.ts'

const ids = { messageId: 'msg_AAAAAAAAAAAAAAAA', correlationId: 'corr_AAAAAAAAAAAAAAAA', traceId: 'ab'.repeat(16) }

describe('events', () => {
  it('reach listeners of their kind and listeners of all, with type and time', () => {
    const clock = manualClock()
    const { events, emit } = createTelemetry({ clock })
    const heard: unknown[] = []
    events.on('peer.notice', (event) => heard.push(event))
    events.onAny((event) => heard.push(event.type))
    emit('peer.notice', { text: 'hello' })
    emit('peer.stopped', { agentId: 'a', aborted: 0 })
    expect(heard).toEqual([{ type: 'peer.notice', at: clock.now(), text: 'hello' }, 'peer.notice', 'peer.stopped'])
  })

  it('are wanted only while somebody listens, so that the hot path can ask first', () => {
    const { events, wants } = createTelemetry({ clock: manualClock() })
    expect(wants('call.ended')).toBe(false)
    const stop = events.on('call.ended', () => {})
    const also = events.on('call.ended', () => {})
    stop()
    expect(wants('call.ended')).toBe(true)
    also()
    expect(wants('call.ended')).toBe(false)
    const none = events.onAny(() => {})
    expect(wants('call.ended')).toBe(true)
    none()
    none()
    expect(wants('call.ended')).toBe(false)
  })

  it('are the same object for nobody to change: each listener may stop itself while it is called', () => {
    const { events, emit } = createTelemetry({ clock: manualClock() })
    let calls = 0
    const stop = events.on('peer.notice', () => {
      calls++
      stop()
    })
    events.on('peer.notice', () => void calls++)
    emit('peer.notice', { text: 'x' })
    emit('peer.notice', { text: 'x' })
    expect(calls).toBe(3)
  })

  it('a listener that throws is reported and disturbs nobody', () => {
    const { events, emit } = createTelemetry({ clock: manualClock() })
    const failures: unknown[] = []
    let reached = false
    events.on('peer.notice', () => {
      throw new Error('of the user')
    })
    events.on('peer.notice', () => {
      reached = true
    })
    events.on('listener.failed', ({ where, cause }) => failures.push([where, (cause as Error).message]))
    emit('peer.notice', { text: 'x' })
    expect(reached).toBe(true)
    expect(failures).toEqual([['events.on(peer.notice)', 'of the user']])
  })

  it('a listener of listener.failed that throws is not asked for ever', () => {
    const { events, emit } = createTelemetry({ clock: manualClock() })
    let calls = 0
    events.on('listener.failed', () => {
      calls++
      throw new Error('again')
    })
    events.on('peer.notice', () => {
      throw new Error('of the user')
    })
    emit('peer.notice', { text: 'x' })
    expect(calls).toBe(1)
  })
})

describe('the message log', () => {
  function logging() {
    const clock = manualClock()
    const telemetry = createTelemetry({ clock })
    const lines: MessageLogLine[] = []
    const stop = logMessages(telemetry, 'desk', (line) => lines.push(line))
    return { telemetry, lines, stop, clock }
  }
  const frame = { messageType: 'request', leaf: '00', sequence: 1, bytes: 9 } as const

  it('has one line per envelope, under exactly these names and in this order', () => {
    const { telemetry, lines, clock } = logging()
    telemetry.emit('envelope.sent', { ...ids, ...frame, to: 'coder' })
    expect(lines).toEqual([
      {
        message_id: ids.messageId,
        correlation_id: ids.correlationId,
        trace_id: ids.traceId,
        sender: 'desk',
        receiver: 'coder',
        message_type: 'request',
        timestamp: new Date(clock.now()).toISOString(),
      },
    ])
    expect(Object.keys(lines[0] as object)).toEqual([
      'message_id',
      'correlation_id',
      'trace_id',
      'sender',
      'receiver',
      'message_type',
      'timestamp',
    ])
  })

  it('turns sender and receiver round for what comes in, and says null where there is no correlation', () => {
    const { telemetry, lines } = logging()
    telemetry.emit('envelope.received', {
      ...ids,
      correlationId: undefined,
      ...frame,
      messageType: 'response',
      from: 'coder',
    })
    expect(lines[0]).toMatchObject({
      sender: 'coder',
      receiver: 'desk',
      message_type: 'response',
      correlation_id: null,
    })
  })

  it('F-46 is one line of JSON whatever stands in it', () => {
    const { telemetry, lines } = logging()
    telemetry.emit('envelope.received', { ...ids, ...frame, from: 'a\n2026-01-01 ERROR \u001b[31m' })
    const text = JSON.stringify(lines[0])
    for (const control of ['\n', '\u001b']) expect(text).not.toContain(control)
  })

  it('ends when told to', () => {
    const { telemetry, lines, stop } = logging()
    stop()
    telemetry.emit('envelope.sent', { ...ids, ...frame, to: 'coder' })
    expect(lines).toEqual([])
    expect(telemetry.wants('envelope.sent')).toBe(false)
  })
})

describe('the ledger', () => {
  it('counts what begins and how it ends', () => {
    const ledger = createLedger()
    expect(ledger.read()).toEqual({ calls: 0, succeeded: 0, failed: 0, inFlight: 0, failovers: 0 })
    for (let i = 0; i < 5; i++) ledger.begin()
    ledger.end(true)
    ledger.end(false)
    ledger.end(true)
    ledger.failover()
    expect(ledger.read()).toEqual({ calls: 5, succeeded: 2, failed: 1, inFlight: 2, failovers: 1 })
  })
})
