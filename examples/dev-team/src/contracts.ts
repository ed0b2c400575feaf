import { capability } from 'hermes-peer'
import { z } from 'zod'

/** A whole commit id, of SHA-1 or SHA-256. */
const sha = z.string().regex(/^[0-9a-f]{40,64}$/)

/**
 * A git patch, base64 of its bytes: files need not be UTF-8. By this bound three of them fit into the result of a task, which
 * travels in one envelope of 1 MiB.
 */
export const MAX_PATCH_BYTES = 192 * 1024
const patch = z.string().max(Math.ceil(MAX_PATCH_BYTES / 3) * 4)

const text = z.string().max(1_000)

/** Of what a command writes, as it comes; empty as a sign that it still runs. */
export const MAX_PIECE = 8_000
const piece = z.object({
  text: z.string().max(MAX_PIECE),
  /** Characters before this text that came faster than they could be told. */
  leftOut: z.number().int().optional(),
})

const HOUR_MS = 3_600_000

/** Why a test command gave no verdict. */
export const cannotRunReasons = [
  'command_not_found',
  'setup_failed',
  'skipped',
  'folder_missing',
  'patch_does_not_apply',
] as const

const verdict = {
  passed: z.boolean(),
  durationMs: z.number(),
  summary: text,
}
const cannotRun = { CANNOT_RUN: z.object({ reason: z.enum(cannotRunReasons), detail: text }) }

/** For searching: plain calls, which go on at another agent when one is lost. */
export const runTests = capability('run_tests', {
  description: 'Runs the test command this agent was started with on one commit, optionally with a patch on top.',
  input: z.object({
    commit: sha,
    patch: patch.optional(),
    /** Asks for the end of what a failing run wrote. */
    excerpt: z.boolean().optional(),
  }),
  output: z.object({ ...verdict, excerpt: z.string().max(8_000).optional() }),
  errors: cannotRun,
  effects: 'none',
  labels: { language: 'any' },
  constraints: { maxConcurrency: 1 },
})

/** For what a person waits for: the runs before a search and those that make sure of the culprit. */
export const watchTests = capability('watch_tests', {
  description: 'As run_tests, on a commit as it is; streams what the command writes while it runs.',
  input: z.object({ commit: sha }),
  yields: piece,
  output: z.object(verdict),
  errors: cannotRun,
  effects: 'none',
  labels: { language: 'any' },
  constraints: { maxConcurrency: 1 },
})

/** A task: it goes on without whoever asked for it, tells how far it is, and begins only when its plan is approved. */
export const repair = capability('repair', {
  description:
    'Finds the smallest part of the reversal of a commit that makes the test pass; asks whether to carry its plan out.',
  input: z.object({ culprit: sha, good: sha, bad: sha }),
  output: z.object({
    patch,
    lines: z.number().int(),
    files: z.array(text).max(1_000),
    trials: z.number().int(),
    minimal: z.boolean(),
    /** The whole reversal, should a reviewer refuse the smallest one; absent when it is too large to be sent. */
    whole: patch.optional(),
    /** A patch by a model that testers and reviewer have accepted. */
    proposal: patch.optional(),
  }),
  asks: {
    question: z.object({
      culprit: sha,
      files: z.array(text).max(1_000),
      lines: z.number().int(),
      conflicts: z.array(text).max(1_000),
    }),
    answer: z.object({ approved: z.boolean() }),
  },
  errors: { NO_REPAIR: z.object({ message: text, hint: text }) },
  effects: 'none',
  // One that waits for its answer holds up no other: whoever asked may be gone.
  constraints: { maxConcurrency: 4, budgetMs: 6 * HOUR_MS },
})

export const review = capability('review', {
  description:
    'Runs the whole suite, and the type checker where there is a tsconfig.json, on a commit with a patch on top; streams what the suite writes.',
  input: z.object({ commit: sha, good: sha, patch }),
  yields: piece,
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
