export interface LinkedController extends AbortController {
  /** Lets go of the outer signal; a long search would otherwise gather one listener a run. */
  dispose(): void
}

/** A controller that aborts with an outer signal as well. */
export function linkedController(outer: AbortSignal | undefined): LinkedController {
  const controller = new AbortController()
  const follow = (): void => controller.abort(outer?.reason)
  if (outer?.aborted) follow()
  else outer?.addEventListener('abort', follow, { once: true })
  return Object.assign(controller, { dispose: () => outer?.removeEventListener('abort', follow) })
}
