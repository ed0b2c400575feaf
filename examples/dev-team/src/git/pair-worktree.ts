import { join } from 'node:path'
import { copyCommits } from './own-objects.ts'
import { addWorktree, type Worktree } from './worktree.ts'

/** Gives a worktree, with objects of its own, in which one commit can be taken back on top of another. */
export interface PairWorktrees {
  /** That of the last pair is kept: who plans for a pair mostly carries the plan out next. */
  open(culprit: string, bad: string): Promise<Worktree>
}

export function pairWorktrees({ repository, folder }: { repository: string; folder: string }): PairWorktrees {
  let last: { culprit: string; bad: string; worktree: Promise<Worktree> } | undefined
  let made = 0

  const make = async (culprit: string, bad: string): Promise<Worktree> => {
    made += 1
    const place = join(folder, String(made))
    const copy = join(place, 'objects.git')
    await copyCommits({ repository, folder: copy, commits: [bad, culprit] })
    return addWorktree({ repository: copy, path: join(place, 'files'), commit: bad })
  }

  return {
    open(culprit, bad) {
      if (last?.culprit === culprit && last.bad === bad) return last.worktree
      const worktree = make(culprit, bad)
      last = { culprit, bad, worktree }
      worktree.catch(() => {
        if (last?.worktree === worktree) last = undefined
      })
      return worktree
    },
  }
}
