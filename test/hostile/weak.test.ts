import { createPublicKey, verify } from 'node:crypto'
import { it } from 'vitest'
import { WEAK_KEYS } from './weak-keys.ts'
it('x', () => {
  for (const k of WEAK_KEYS) {
    const m = Buffer.from('hello')
    const key = createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(k.raw).toString('base64url') } })
    const t = performance.now()
    const s = k.sign(m)
    console.log(k.name, verify(null, m, key, s), performance.now() - t)
  }
})
