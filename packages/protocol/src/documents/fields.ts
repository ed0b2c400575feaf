import { fromBase64url } from '../bytes/parts.ts'
import { HermesError } from '../errors/hermes-error.ts'
import { isAgentId, isName } from '../names.ts'

/** Reads the fields of one document; each throws `MALFORMED` that names document and field. */
export class Fields {
  readonly #raw: Record<string, unknown>
  readonly #what: string

  constructor(value: unknown, what: string) {
    this.#what = what
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw new HermesError('MALFORMED', { message: `${what} is not an object` })
    }
    this.#raw = value as Record<string, unknown>
  }

  refuse(field: string, why: string): never {
    throw new HermesError('MALFORMED', { message: `${this.#what}: ${field} ${why}`, details: { field } })
  }

  has(field: string): boolean {
    return this.#raw[field] !== undefined
  }

  raw(field: string): unknown {
    return this.#raw[field]
  }

  agentId(field = 'agent_id'): string {
    const value = this.#raw[field]
    return isAgentId(value) ? value : this.refuse(field, 'is not an agent id')
  }

  network(): string {
    const value = this.#raw.network
    return isName(value) ? value : this.refuse('network', 'is not a network name')
  }

  natural(field: string, most = Number.MAX_SAFE_INTEGER): number {
    const value = this.#raw[field]
    if (!Number.isSafeInteger(value) || (value as number) < 0 || (value as number) > most) {
      this.refuse(field, `is not an integer from 0 to ${most}`)
    }
    return value as number
  }

  text(field: string, longest: number): string {
    const value = this.#raw[field]
    if (typeof value !== 'string' || value.length > longest) {
      this.refuse(field, `is not a text of at most ${longest} characters`)
    }
    return value as string
  }

  texts(field: string, most: number, longest: number, fits: (text: string) => boolean = () => true): string[] {
    const value = this.#raw[field]
    const sound =
      Array.isArray(value) &&
      value.length <= most &&
      value.every((item) => typeof item === 'string' && item.length <= longest && fits(item))
    return sound ? (value as string[]) : this.refuse(field, `is not a list of at most ${most} such texts`)
  }

  key(field = 'key'): Uint8Array {
    const value = this.#raw[field]
    const bytes = typeof value === 'string' ? fromBase64url(value) : undefined
    return bytes?.length === 32 ? bytes : this.refuse(field, 'is not a raw key in base64url')
  }
}
