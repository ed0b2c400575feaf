/**
 * libp2p calls `Promise.withResolvers`, which Node has from 22 on. Import this file before anything of libp2p: modules
 * are evaluated in the order of their imports, and some of libp2p's call it while they load.
 */

interface Resolvers<T> {
  promise: Promise<T>
  resolve: (value: T | PromiseLike<T>) => void
  reject: (reason?: unknown) => void
}

function withResolvers<T>(this: PromiseConstructor): Resolvers<T> {
  let resolve!: Resolvers<T>['resolve']
  let reject!: Resolvers<T>['reject']
  const promise = new this<T>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  return { promise, resolve, reject }
}

if (!('withResolvers' in Promise)) {
  Object.defineProperty(Promise, 'withResolvers', { value: withResolvers, writable: true, configurable: true })
}
