import { append, put, type Step, step, swap } from '../step.ts'

/** Commits 34 to 43. */
export const THIRD: readonly Step[] = [
  step(
    'Add events',
    put(
      'src/events.js',
      `/** @typedef {(value: unknown) => void} Listener */

export function createEvents() {
  /** @type {Map<string, Set<Listener>>} */
  const listeners = new Map()
  return {
    /** @param {string} name @param {Listener} listener */
    on(name, listener) {
      const known = listeners.get(name) ?? new Set()
      listeners.set(name, known.add(listener))
    },
    /** @param {string} name @param {unknown} value */
    emit(name, value) {
      for (const listener of listeners.get(name) ?? []) listener(value)
    },
  }
}
`,
    ),
    swap('src/index.js', 'export { fromCents', "export { createEvents } from './events.js'\nexport { fromCents"),
  ),
  step(
    'Save a cart once it is quiet',
    put(
      'src/autosave.js',
      `/**
 * Saves when nothing has changed for a while.
 * @param {() => void} save
 * @param {number} quietMs
 */
export function autosave(save, quietMs) {
  /** @type {number | undefined} */
  let timer
  return {
    changed() {
      clearTimeout(timer)
      timer = setTimeout(save, quietMs)
    },
  }
}
`,
    ),
    put(
      'src/timers.d.ts',
      'declare function setTimeout(run: () => void, ms: number): number\ndeclare function clearTimeout(timer: number | undefined): void\n',
    ),
    swap('src/index.js', 'export { add,', "export { autosave } from './autosave.js'\nexport { add,"),
  ),
  step(
    'Test autosave with the real timer',
    append(
      'test/cart.test.js',
      `
test('a cart is saved once it is quiet', async () => {
  const cart = createCart()
  const saved = await new Promise((resolve) => {
    const saver = basket.autosave(() => resolve(basket.count(cart)), 80)
    for (const sku of ['pen', 'pad']) {
      add(cart, sku, 100)
      saver.changed()
    }
  })
  assert.equal(saved, 2)
})
`,
    ),
  ),
  step(
    'README: autosave',
    append('README.md', '\n## Autosave\n\n`autosave(save, quietMs).changed()` saves once a cart is quiet.\n'),
  ),
  step(
    'Add shipping',
    put(
      'src/shipping.js',
      `/** Cents for one parcel. */
export const PARCEL = 490

/** @param {number} cents value of the goods */
export function shipping(cents) {
  return cents > 0 ? PARCEL : 0
}
`,
    ),
    swap('src/index.js', 'export { available', "export { shipping } from './shipping.js'\nexport { available"),
  ),
  step(
    'shipping: free from 50.00',
    swap(
      'src/shipping.js',
      '/** @param {number} cents value',
      'const FREE_FROM = 5000\n\n/** @param {number} cents value',
    ),
    swap('src/shipping.js', 'return cents > 0 ?', 'return cents > 0 && cents < FREE_FROM ?'),
  ),
  step(
    'Test shipping',
    append(
      'test/shop.test.js',
      `
test('large orders are sent free', () => {
  assert.equal(basket.shipping(4999), 490)
  assert.equal(basket.shipping(5000), 0)
})
`,
    ),
  ),
  step(
    'coupon: allow more codes',
    append(
      'src/coupon.js',
      `
/**
 * @param {string} code
 * @param {number} percent
 */
export function addCoupon(code, percent) {
  if (percent < 0 || percent > 100) throw new RangeError('not a percent')
  COUPONS.set(code.toUpperCase(), percent)
}
`,
    ),
    swap('src/index.js', 'export { couponPercent', 'export { addCoupon, couponPercent'),
  ),
  step(
    'money: describe fromCents',
    swap(
      'src/money.js',
      '/** @param {number} cents */',
      '/**\n * For showing only; never count with it.\n * @param {number} cents\n */',
    ),
  ),
  step(
    'cart: has',
    append(
      'src/cart.js',
      `
/**
 * @param {Cart} cart
 * @param {string} sku
 */
export function has(cart, sku) {
  return cart.lines.some((line) => line.sku === sku)
}
`,
    ),
    swap('src/index.js', 'createCart, remove', 'createCart, has, remove'),
  ),
]
