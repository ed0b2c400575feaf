import { generateKeyPairSync } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

export interface TeamKeys {
  /** Path of each agent's key file, by agent id. */
  readonly keys: ReadonlyMap<string, string>
  /** Path of the allow list that all of them share. */
  readonly trust: string
}

/** Makes an Ed25519 key for each agent and the trust file that admits exactly these. */
export async function writeKeys(folder: string, agentIds: readonly string[]): Promise<TeamKeys> {
  const keys = new Map<string, string>()
  const agents: { agent_id: string; key: string }[] = []
  for (const agentId of agentIds) {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519')
    const path = join(folder, `${agentId}.pem`)
    await writeFile(path, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
    keys.set(agentId, path)
    agents.push({ agent_id: agentId, key: publicKey.export({ format: 'jwk' }).x as string })
  }
  const trust = join(folder, 'trust.json')
  await writeFile(trust, `${JSON.stringify({ agents }, undefined, 2)}\n`, { mode: 0o600 })
  return { keys, trust }
}
