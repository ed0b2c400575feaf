import { type Certificate, type PublicKey, readCertificate, sha256Hex } from '@hermes-peer/protocol'
import { LRUCache } from 'lru-cache'

/** Verifies one certificate, as `readCertificate` does. */
export type ReadCertificate = (bytes: Uint8Array, issuer: PublicKey) => Certificate

/** Certificates remembered as verified, of a few hundred bytes: three of some thousand agents, as each report carries them. */
const MOST = 10_000

/** A reader that remembers what it has verified; whether a certificate still holds is judged each time. */
export function createCertificateReader(): ReadCertificate {
  const verified = new LRUCache<string, Certificate>({ maxSize: MOST, sizeCalculation: () => 1 })
  return (bytes, issuer) => {
    const name = `${issuer.fingerprint} ${sha256Hex(bytes)}`
    let certificate = verified.get(name)
    if (!certificate) {
      certificate = readCertificate(bytes, issuer)
      verified.set(name, certificate)
    }
    return certificate
  }
}
