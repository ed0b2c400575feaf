import { HermesError } from '../errors/hermes-error.ts'
import { pointerTo } from './pointer.ts'

/** `INVALID_PAYLOAD` that names the place in the data; details are `{path, issue}`, path a JSON Pointer. */
export function invalidPayload(path: readonly (string | number)[], issue: string, cause?: unknown): HermesError {
  const pointer = pointerTo(path)
  return new HermesError('INVALID_PAYLOAD', {
    message: `payload${pointer}: ${issue}`,
    details: { path: pointer, issue },
    ...(cause === undefined ? {} : { cause }),
  })
}

/** `PAYLOAD_TOO_LARGE` with size (where it is known) and limit in bytes. */
export function payloadTooLarge(limit: number, size?: number): HermesError {
  return new HermesError('PAYLOAD_TOO_LARGE', {
    message: `the payload has ${size === undefined ? 'more' : `${size} bytes, more`} than the ${limit} bytes allowed`,
    details: size === undefined ? { limit } : { size, limit },
  })
}
