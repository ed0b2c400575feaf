import { createTail } from '../process/tail.ts'

/** An endpoint that speaks chat completions. */
export interface ModelEndpoint {
  readonly baseUrl: string
  readonly apiKey: string
  readonly model: string
}

/** What a model is told: the least that a repair can be made from. */
export interface ProposalRequest {
  readonly culprit: string
  /** How the test fails. */
  readonly failing: string
  /** Present text of the files that may be changed. */
  readonly files: readonly { readonly path: string; readonly text: string }[]
}

/** Sent of each part, characters, so that a prompt stays under some 40 k tokens. */
const MAX_PART = 40_000
/** Longest answer read, bytes. */
const MAX_ANSWER = 256 * 1024
/** Longest wait for the model, ms. */
const MODEL_LIMIT_MS = 60_000

const INSTRUCTIONS = `A commit broke a test. Answer with one unified diff in git format, and nothing else, that repairs the cause in the
given files with as few changed lines as possible. Do not undo what else the commit was meant to do. Do not touch tests.`

/** The endpoint named by the environment, undefined unless all three variables are set. */
export function modelEndpoint(env: NodeJS.ProcessEnv): ModelEndpoint | undefined {
  const { OPENAI_BASE_URL: baseUrl, OPENAI_API_KEY: apiKey, HERMES_MODEL: model } = env
  return baseUrl && apiKey && model ? { baseUrl, apiKey, model } : undefined
}

/** Asks a model for a patch. Rejects when the endpoint fails; resolves with undefined when the answer holds no patch. */
export async function askForPatch(
  endpoint: ModelEndpoint,
  request: ProposalRequest,
  signal: AbortSignal,
): Promise<string | undefined> {
  const response = await fetch(`${endpoint.baseUrl.replace(/\/+$/, '')}/chat/completions`, {
    method: 'POST',
    // A redirect would carry the key elsewhere.
    redirect: 'error',
    signal: AbortSignal.any([signal, AbortSignal.timeout(MODEL_LIMIT_MS)]),
    headers: { 'content-type': 'application/json', authorization: `Bearer ${endpoint.apiKey}` },
    body: JSON.stringify({
      model: endpoint.model,
      messages: [
        { role: 'system', content: INSTRUCTIONS },
        { role: 'user', content: prompt(request) },
      ],
    }),
  })
  const text = await readBounded(response)
  if (!response.ok) throw new Error(`the model's endpoint answered ${response.status}`)
  const content: unknown = JSON.parse(text)?.choices?.[0]?.message?.content
  return typeof content === 'string' ? extractPatch(content) : undefined
}

/** The first diff in an answer, with or without a fence around it. */
export function extractPatch(answer: string): string | undefined {
  const fenced = [...answer.matchAll(/^```[^\n]*\n([\s\S]*?)^```/gm)].map((match) => match[1] as string)
  const body = [...fenced, answer].find(
    (text) => /^--- \S/m.test(text) && /^\+\+\+ \S/m.test(text) && /^@@ /m.test(text),
  )
  if (body === undefined) return undefined
  const start = /^(diff --git |--- \S)/m.exec(body)?.index ?? 0
  return `${body.slice(start).trimEnd()}\n`
}

function prompt({ culprit, failing, files }: ProposalRequest): string {
  const part = (title: string, text: string): string => `## ${title}\n${text.slice(0, MAX_PART)}\n`
  return [
    part('The commit', culprit),
    part('How the test fails now', failing),
    ...files.map(({ path, text }) => part(`Present text of ${path}`, text)),
  ].join('\n')
}

async function readBounded(response: Response): Promise<string> {
  const all = createTail(MAX_ANSWER)
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    if (size > MAX_ANSWER) throw new Error("the model's answer is too long")
    all.push(chunk)
  }
  return all.text()
}
