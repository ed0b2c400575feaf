import { randomUUID } from 'node:crypto'
import { MAX_PATCH_BYTES } from '../contracts.ts'
import { failure } from '../failures.ts'
import { parentOf } from '../git/repository.ts'
import type { Worktree } from '../git/worktree.ts'
import { allEdits, renderEdits } from './edits.ts'
import { type Reversal, reverseCommit } from './reversal.ts'

/** What is to be repaired, and the interaction in which it was asked. */
export interface Task {
  readonly correlationId: string
  readonly culprit: string
  readonly bad: string
}

export interface Plan extends Task {
  readonly id: string
  readonly reversal: Reversal
}

/** Plans that wait for their confirmation. */
export interface Plans {
  /** Fails with `NO_REPAIR` when nothing of the culprit, or too much, would have to be taken back. */
  make(task: Task, worktree: Worktree): Promise<Plan>
  /** The plan with that id. Fails with `NO_REPAIR` when it is not one of this task. */
  confirmed(id: string, task: Task): Plan
}

/** Plans kept; the oldest goes first. One that is being carried out stays, as its request may come a second time. */
const MAX_PLANS = 8

export function createPlans(): Plans {
  const plans = new Map<string, Plan>()
  return {
    async make(task, worktree) {
      const { culprit, bad } = task
      const merge = (await parentOf(worktree.git, culprit, 2)) !== undefined
      const reversal = await reverseCommit(worktree, { culprit, bad, merge })
      if (renderEdits(reversal.files, allEdits(reversal.files)).length > MAX_PATCH_BYTES) {
        throw failure('NO_REPAIR', 'The culprit changes too much to be reduced.', 'Look at it with `git show`.')
      }
      const plan = { ...task, id: randomUUID(), reversal }
      plans.set(plan.id, plan)
      for (const oldest of plans.keys()) if (plans.size > MAX_PLANS) plans.delete(oldest)
      return plan
    },
    confirmed(id, { correlationId, culprit, bad }) {
      const plan = plans.get(id)
      if (plan?.correlationId === correlationId && plan.culprit === culprit && plan.bad === bad) return plan
      throw failure('NO_REPAIR', 'The confirmed plan is not one of this interaction.', 'Ask for a plan first.')
    },
  }
}
