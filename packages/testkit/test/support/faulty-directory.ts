import type { DirectorySource } from 'hermes-peer'

/** Mistakes that a directory could make, each of which the compliance suite must catch. */
const MISTAKES = {
  'finds nobody': () => ({ async *find() {} }),
  'finds whoever asks, too': (source, own) => ({
    async *find(capability, options) {
      yield* source.find(capability, options)
      yield { peerId: own, addresses: ['/ip4/127.0.0.1/tcp/1'] }
    },
  }),
  'names a peer twice': (source) => ({
    async *find(capability, options) {
      for await (const peer of source.find(capability, options)) yield* [peer, peer]
    },
  }),
  'leaves out the addresses': (source) => ({
    async *find(capability, options) {
      for await (const { peerId } of source.find(capability, options)) yield { peerId, addresses: [] }
    },
  }),
  'says that nobody offers it when it cannot be reached': (source) => ({
    async *find(capability, options) {
      try {
        yield* source.find(capability, options)
      } catch (error) {
        if ((error as { code?: string }).code === 'STOPPED') throw error
      }
    },
  }),
  'says that it cannot be reached when nobody offers it': (source) => ({
    async *find(capability, options) {
      let found = 0
      for await (const peer of source.find(capability, options)) {
        found++
        yield peer
      }
      if (found === 0) throw Object.assign(new Error('nobody'), { code: 'DIRECTORY_UNREACHABLE', retryable: true })
    },
  }),
  'adds to what was registered': (source) => {
    const names = new Set<string>()
    return {
      register(registration, options) {
        for (const name of registration.capabilities) names.add(name)
        return source.register({ ...registration, capabilities: [...names] }, options)
      },
    }
  },
  'never forgets': (source) => ({
    register: (registration, options) => source.register({ ...registration, leaseMs: 1e9 }, options),
  }),
  'does not renew': () => ({ renew: async () => undefined }),
  'cannot take back': () => ({ unregister: async () => undefined }),
  'goes on after close': () => ({ close: async () => undefined }),
} satisfies Record<string, (source: DirectorySource, own: string) => Partial<DirectorySource>>

export type DirectoryMistake = keyof typeof MISTAKES
export const DIRECTORY_MISTAKES = Object.keys(MISTAKES) as DirectoryMistake[]

export function faultyDirectory(source: DirectorySource, own: string, mistake: DirectoryMistake): DirectorySource {
  const make: (source: DirectorySource, own: string) => Partial<DirectorySource> = MISTAKES[mistake]
  return { ...source, ...make(source, own) }
}
