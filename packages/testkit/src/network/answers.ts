/** Answers to questions that are open at the same time, as they come. */
export interface Answers<T> {
  /** One more answer will come, unless it is cancelled. Call for all of them before the first is due. */
  expect(cancel: () => void): void
  add(answer: T): void
  /** The next answer; undefined when all have been given. Rejects with the signal's reason. */
  next(): Promise<T | undefined>
  /** Cancels those that have not come. */
  stop(): void
}

export function createAnswers<T>(signal: AbortSignal): Answers<T> {
  return new OpenAnswers<T>(signal)
}

class OpenAnswers<T> implements Answers<T> {
  readonly #signal: AbortSignal
  /** Both bounded by the questions of one look-up. */
  readonly #cancels: (() => void)[] = []
  readonly #ready: T[] = []
  #given = 0
  #wake = () => {}

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  expect(cancel: () => void): void {
    this.#cancels.push(cancel)
  }

  add(answer: T): void {
    this.#ready.push(answer)
    this.#wake()
  }

  async next(): Promise<T | undefined> {
    this.#signal.throwIfAborted()
    if (this.#given === this.#cancels.length) return undefined
    if (this.#ready.length === 0) await this.#more()
    this.#given += 1
    return this.#ready.shift()
  }

  stop(): void {
    for (const cancel of this.#cancels) cancel()
  }

  #more(): Promise<void> {
    return new Promise((resolve, reject) => {
      const giveUp = () => reject(this.#signal.reason)
      this.#signal.addEventListener('abort', giveUp, { once: true })
      this.#wake = () => {
        this.#signal.removeEventListener('abort', giveUp)
        resolve()
      }
    })
  }
}
