import { existsSync, readFileSync } from 'node:fs'
import { FINGERPRINT, HermesError, isAgentId } from '@hermes-peer/protocol'
import { writePrivateFile } from './private-file.ts'
import { ADMITTED, mismatch, notAllowed, type Trust } from './trust.ts'

/** Agents pinned at most; further ones are refused, none is forgotten. */
const MOST_PINS = 10_000

export interface PinStore {
  read(): Record<string, string>
  write(pins: Record<string, string>): void
}

/**
 * Trust on first use, but only of an agent that this peer dialled itself at an address the user gave; from then on its key
 * is the only one that speaks for it.
 */
export function pinning(store: PinStore, options: { report: (text: string) => void }): Trust {
  const pins = new Map(Object.entries(store.read()))
  return {
    judge({ agentId, fingerprint, met, chosen }) {
      const pinned = pins.get(agentId)
      if (pinned) return pinned === fingerprint ? ADMITTED : mismatch(agentId, fingerprint, pinned)
      if (met !== 'outbound' || !chosen) {
        return notAllowed(`${agentId} is not known here; connect to it by its address to pin its key`)
      }
      if (pins.size >= MOST_PINS) return notAllowed(`${MOST_PINS} keys are pinned already; remove some first`)
      return ADMITTED
    },
    proven({ agentId, fingerprint, address }) {
      const pinned = pins.get(agentId)
      if (pinned === fingerprint) return
      if (pinned) {
        throw new HermesError('IDENTITY_MISMATCH', {
          message: `${agentId} was pinned to ${pinned} meanwhile, ${fingerprint} came`,
        })
      }
      store.write({ ...Object.fromEntries(pins), [agentId]: fingerprint })
      pins.set(agentId, fingerprint)
      options.report(`pinned ${agentId} at ${address} to key ${fingerprint}`)
    },
    known: (agentId) => pins.get(agentId),
    standing: (fingerprint) => ([...pins.values()].includes(fingerprint) ? 'admitted' : 'unknown'),
    describe: () => 'admitted: agents whose key was pinned when this one first dialled them',
  }
}

/** Pins in a JSON file of mode 0600. Throws `INVALID_TRUST_FILE`, `STORAGE_FAILED`. */
export function pinFile(path: string): PinStore {
  return {
    read() {
      if (!existsSync(path)) return {}
      try {
        const pins: unknown = JSON.parse(readFileSync(path, 'utf8').replace(/^\uFEFF/, ''))
        const sound =
          typeof pins === 'object' &&
          pins !== null &&
          !Array.isArray(pins) &&
          Object.entries(pins).every(([id, key]) => isAgentId(id) && typeof key === 'string' && FINGERPRINT.test(key))
        if (!sound) throw new Error('it must map agent ids to fingerprints')
        return pins as Record<string, string>
      } catch (cause) {
        throw new HermesError('INVALID_TRUST_FILE', {
          message: `trust.pins: ${path} cannot be used: ${(cause as Error).message}`,
          details: { field: 'trust.pins' },
          cause,
        })
      }
    },
    write: (pins) => writePrivateFile(path, `${JSON.stringify(pins, null, 2)}\n`),
  }
}

export function memoryPins(): PinStore {
  let kept: Record<string, string> = {}
  return {
    read: () => kept,
    write: (pins) => {
      kept = pins
    },
  }
}
