import { runCommand } from '../../src/process/command.ts'

await runCommand({
  command: process.argv[2] as string,
  cwd: process.env.FOLDER as string,
  env: process.env,
  limitMs: 60_000,
})
