import { performance } from 'node:perf_hooks'
import { fingerprintOf, HermesError, type SigningKey, STREAM_PROTOCOL } from '@hermes-peer/protocol'
import { type Clock, systemClock } from './clock.ts'
import { recordKinds } from './directory/records.ts'
import { allowList, allowListFile } from './identity/allow-list.ts'
import { fileEpochStore } from './identity/epoch.ts'
import { createKeyCheck, type KeyCheck } from './identity/key-check.ts'
import { organisation } from './identity/organisation.ts'
import { loadOwnKeys, nextInstance, readInstance } from './identity/own-keys.ts'
import { memoryPins, pinFile, pinning } from './identity/pins.ts'
import { loadPreSharedKey } from './identity/pre-shared-key.ts'
import { openPrivateFolder, type PrivateFolder } from './identity/private-folder.ts'
import { readPublicKey } from './identity/public-key-file.ts'
import { anyOf, nobody, type Trust } from './identity/trust.ts'
import { createDiskJournal } from './journal/disk/disk-journal.ts'
import type { Journal } from './journal/journal.ts'
import { createMemoryJournal } from './journal/memory-journal.ts'
import type { Network } from './network/network.ts'
import type { Settings } from './options.ts'
import { type Random, systemRandom } from './random.ts'
import type { Opened, Seams } from './seams.ts'

/** The seams of a real peer: this machine's clock, random source, disk and network. */
export function machineSeams(): Seams {
  const clock = systemClock()
  const random = systemRandom()
  const keys = createKeyCheck()
  let utilization = performance.eventLoopUtilization()
  return {
    clock,
    random,
    keys,
    loopUtilization() {
      const now = performance.eventLoopUtilization()
      const share = performance.eventLoopUtilization(now, utilization).utilization
      utilization = now
      return Number.isFinite(share) ? share : 0
    },
    async open(settings, report) {
      // Loaded here, not at import: libp2p is most of the cold start, and whoever only checks contracts does not need it.
      const { createLibp2pNetwork } = await import('./network/libp2p/index.ts')
      const folder = settings.preset === 'local' ? openPrivateFolder(settings.folder, settings.agentId) : undefined
      const keyFile = settings.identity ?? folder?.keyFile
      if (!keyFile) {
        throw new HermesError('INVALID_OPTION', {
          message: `identity is missing: preset ${settings.preset} has no private folder to keep a key in`,
          hint: 'Give the path of a key file; it is made when it does not exist.',
          details: { field: 'identity' },
        })
      }
      const own = loadOwnKeys({ settings, keyFile, clock, random })
      const trust = trustOf(settings, folder, { clock, keys, report })
      const preSharedKey = settings.preSharedKey ? loadPreSharedKey(settings.preSharedKey) : undefined
      const networkOf = (key: SigningKey, listen: readonly string[]): Network =>
        createLibp2pNetwork({
          privateKey: key.seed,
          networkName: settings.network,
          listen: [...listen],
          ...(settings.announce ? { announce: [...settings.announce] } : {}),
          ...(preSharedKey ? { preSharedKey } : {}),
          relay: { via: settings.relay.via, ...(settings.relay.server ? { server: settings.relay.server } : {}) },
          ...(settings.gate ? { gate: gateOf(settings, trust) } : {}),
          mdns: settings.mdns,
          dialTimeoutMs: settings.tunables.dialTimeoutMs,
          records: recordKinds({
            networkName: settings.network,
            mostLifeMs: settings.tunables.manifestLifeMs,
            toleranceMs: settings.tunables.maxClockOffsetMs,
            now: () => clock.now(),
          }),
          limits: {
            maxConnections: settings.tunables.maxConnections,
            pendingHandshakes: settings.tunables.pendingHandshakes,
            // Streams over our own bound are told so; only beyond that does the transport reset them without a word.
            inboundChannels: { [STREAM_PROTOCOL]: 3 * settings.tunables.streamsPerPeer },
            ...(settings.preset === 'local' ? {} : { perAddressLimit: settings.tunables.pendingHandshakesPerAddress }),
          },
        })
      const { key, agentKey, certificates, agentSigner } = own
      return {
        key,
        agentKey,
        certificates,
        ...(agentSigner ? { agentSigner } : {}),
        rotation: {
          alone: agentSigner !== undefined,
          async next(serial, files) {
            const made = files
              ? readInstance(files.identity, files.certificate, settings, clock)
              : nextInstance(own, serial, { settings, keyFile, clock, random })
            const network = networkOf(made.key, anyPort(settings.listen))
            const named = settings.listen.filter((address) => !anyPort([address]).includes(address))
            return {
              ...made,
              network,
              inherit: async () => {
                if (named.length > 0) await network.listen?.(named)
              },
            }
          },
        },
        epochs: fileEpochStore(`${keyFile}.epoch`),
        trust,
        network: networkOf(key, settings.listen),
        journal: journalOf(settings, keyFile, random),
        neighbours: () => folder?.neighbours(settings.network) ?? [],
        announce: (addresses) =>
          folder?.announce({ key: agentKey.raw, network: settings.network, addresses }) ?? (() => undefined),
      } satisfies Opened
    },
  }
}

/** The ports that are named are taken by the node of the old key as long as it runs. */
function anyPort(listen: readonly string[]): readonly string[] {
  return listen.map((address) => address.replace(/\/tcp\/\d+/, '/tcp/0'))
}

/** Who may connect at all: whom trust knows, and whom the user has named. */
function gateOf({ relay, bootstrap, gate, tunables }: Settings, trust: Trust) {
  // Of an address that leads through a relay both are named.
  const ids = [...relay.via, ...bootstrap].flatMap((address) =>
    [...address.matchAll(/\/p2p\/([^/]+)/g)].map(([, id]) => id ?? ''),
  )
  return {
    standing: (key: Uint8Array) => {
      const said = trust.standing?.(fingerprintOf(key)) ?? 'unknown'
      return gate === 'keys' && said === 'unknown' ? 'stranger' : said
    },
    named: new Set(ids),
    unknown: tunables.unknownConnections,
    unknownMs: tunables.unknownConnectionMs,
    perGroup: tunables.connectionsPerGroup,
  }
}

/** Beside the key, because it belongs to that identity: whoever moves the one has to move the other. */
function journalOf({ journal, tunables }: Settings, keyFile: string, random: Random): Journal {
  if (journal === false) return createMemoryJournal({ limits: tunables })
  return createDiskJournal({ folder: journal ?? `${keyFile}.journal`, limits: tunables, random })
}

function trustOf(
  { trust, preset, network, tunables }: Settings,
  folder: PrivateFolder | undefined,
  { clock, keys, report }: { clock: Clock; keys: KeyCheck; report: (text: string) => void },
): Trust {
  const modes: Trust[] = []
  const allow = trust?.allow
  if (typeof allow === 'string') modes.push(allowListFile(allow, { monotonic: () => clock.monotonic(), report }))
  else if (allow) modes.push(allowList(allow))
  if (trust?.org !== undefined) {
    const key = readPublicKey(trust.org, 'trust.org')
    modes.push(organisation({ key, network, clock, toleranceMs: tunables.maxClockOffsetMs, keys }))
  }
  if (folder && !trust) modes.push(folder.trust)
  if (trust?.pins) modes.push(pinning(pinFile(trust.pins), { report }))
  else if (folder && !trust) modes.push(pinning(pinFile(folder.pinFile), { report }))
  if (modes.length === 0) return preset === 'none' || preset === 'server' ? nobody() : pinning(memoryPins(), { report })
  return modes.length === 1 ? (modes[0] as Trust) : anyOf(modes)
}
