import { capability } from 'hermes-peer'
import { z } from 'zod'

/** A whole commit id, of SHA-1 or SHA-256. */
const sha = z.string().regex(/^[0-9a-f]{40,64}$/)

/** A git patch, base64 of its bytes: files need not be UTF-8. The bound keeps a message under 1 MiB. */
export const MAX_PATCH_BYTES = 512 * 1024
const patch = z.string().max(Math.ceil(MAX_PATCH_BYTES / 3) * 4)

const text = z.string().max(1_000)

/** Why a test command gave no verdict. */
export const cannotRunReasons = [
  'command_not_found',
  'setup_failed',
  'skipped',
  'folder_missing',
  'patch_does_not_apply',
] as const

export const runTests = capability('run_tests', {
  description: 'Runs the test command this agent was started with on one commit, optionally with a patch on top.',
  input: z.object({
    commit: sha,
    patch: patch.optional(),
    /** Asks for the end of what a failing run wrote. */
    excerpt: z.boolean().optional(),
  }),
  output: z.object({
    passed: z.boolean(),
    durationMs: z.number(),
    summary: text,
    excerpt: z.string().max(8_000).optional(),
  }),
  errors: { CANNOT_RUN: z.object({ reason: z.enum(cannotRunReasons), detail: text }) },
  effects: 'none',
  labels: { language: 'any' },
  constraints: { maxConcurrency: 1 },
})

export const repair = capability('repair', {
  description:
    'Finds the smallest part of the reversal of a commit that makes the test pass; asks for confirmation of its plan first.',
  input: z.object({
    culprit: sha,
    good: sha,
    bad: sha,
    /** The id of the plan to carry out, in a second request of the same correlation. */
    confirmed: z.string().max(64).optional(),
  }),
  output: z.object({
    patch,
    lines: z.number().int(),
    files: z.array(text).max(1_000),
    trials: z.number().int(),
    minimal: z.boolean(),
    /** The whole reversal, should a reviewer refuse the smallest one. */
    whole: patch,
    /** A patch by a model that testers and reviewer have accepted. */
    proposal: patch.optional(),
  }),
  partial: z.object({
    plan: z.object({
      id: z.string().max(64),
      culprit: sha,
      files: z.array(text).max(1_000),
      lines: z.number().int(),
      conflicts: z.array(text).max(1_000),
    }),
  }),
  errors: { NO_REPAIR: z.object({ message: text, hint: text }) },
  effects: 'none',
  constraints: { maxConcurrency: 1 },
})

export const review = capability('review', {
  description:
    'Runs the whole suite, and the type checker where there is a tsconfig.json, on a commit with a patch on top.',
  input: z.object({ commit: sha, good: sha, patch }),
  output: z.object({
    accepted: z.boolean(),
    /** `failed_before`: it fails at the good revision too, so it says nothing about the patch. */
    suite: z.object({ state: z.enum(['passed', 'failed', 'failed_before']), summary: text }),
    types: z.object({ state: z.enum(['clean', 'errors', 'errors_before', 'skipped']), summary: text }),
  }),
  errors: { CANNOT_REVIEW: z.object({ detail: text }) },
  effects: 'none',
  constraints: { maxConcurrency: 1 },
})
