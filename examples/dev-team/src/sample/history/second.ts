import { append, move, put, type Step, step, swap } from '../step.ts'

/** Commits 23 to 43. */
export const SECOND: readonly Step[] = [
  step(
    'Test an unknown coupon',
    append('test/shop.test.js', `
test('an unknown code takes nothing off', () => {
  assert.equal(basket.couponPercent('NOPE'), 0)
})
`),
  ),
  step(
    'Add stock',
    put('src/stock.js', `/** @returns {Map<string, number>} */
export function createStock() {
  return new Map()
}

/**
 * @param {Map<string, number>} stock
 * @param {string} sku
 * @param {number} quantity
 */
export function receive(stock, sku, quantity) {
  stock.set(sku, available(stock, sku) + quantity)
}

/**
 * @param {Map<string, number>} stock
 * @param {string} sku
 */
export function available(stock, sku) {
  return stock.get(sku) ?? 0
}
`),
  ),
  step('README: stock', append('README.md', '\n## Stock\n\nA stock tells how many pieces are `available`.\n')),
  step(
    'Export stock, test it',
    swap('src/index.js', "export { tax }", "export { available, createStock, receive } from './stock.js'\nexport { tax }"),
    append('test/shop.test.js', `
test('what is received is available', () => {
  const { available, createStock, receive } = basket
  const stock = createStock()
  receive(stock, 'pen', 3)
  receive(stock, 'pen', 2)
  assert.equal(available(stock, 'pen'), 5)
  assert.equal(available(stock, 'pad'), 0)
})
`),
  ),
  step(
    'Test negative prices',
    append('test/prices.test.js', `
test('money given back shows a minus', () => {
  assert.equal(basket.formatPrice(-500, 'USD'), '-$5.00')
})
`),
  ),
  step(
    'Rename format.js to price-format.js',
    move('src/format.js', 'src/price-format.js'),
    swap('src/index.js', "'./format.js'", "'./price-format.js'"),
  ),
  step(
    'tax: rates by country',
    append('src/tax.js', `
/** @type {Record<string, number>} */
const RATES = { de: 0.19, fr: 0.2, jp: 0.1 }

/** @param {string} country two letters */
export function rateOf(country) {
  return RATES[country] ?? DEFAULT_RATE
}
`),
  ),
  step(
    'Export and test tax rates',
    swap('src/index.js', 'export { tax }', 'export { rateOf, tax }'),
    append('test/prices.test.js', `
test('rates differ by country', () => {
  assert.equal(basket.tax(1000, basket.rateOf('jp')), 100)
})
`),
  ),
  step(
    'stock: reserve pieces',
    append('src/stock.js', `
/**
 * Takes pieces out of the stock; false when there are too few.
 * @param {Map<string, number>} stock
 * @param {string} sku
 * @param {number} quantity
 */
export function reserve(stock, sku, quantity) {
  if (available(stock, sku) < quantity) return false
  receive(stock, sku, -quantity)
  return true
}
`),
    swap('src/index.js', 'createStock, receive }', 'createStock, receive, reserve }'),
  ),
  step(
    'Test reserving',
    append('test/shop.test.js', `
test('only what is there can be reserved', () => {
  const { createStock, receive, reserve } = basket
  const stock = createStock()
  receive(stock, 'pen', 1)
  assert.equal(reserve(stock, 'pen', 1), true)
  assert.equal(reserve(stock, 'pen', 1), false)
})
`),
  ),
  step(
    'Release 1.1.0',
    swap('package.json', '"1.0.0"', '"1.1.0"'),
    swap('CHANGELOG.md', '## Unreleased', '## 1.1.0'),
    append('CHANGELOG.md', '- Stock, tax rates by country.\n'),
  ),
  step(
    'Add events',
    put('src/events.js', `/** @typedef {(value: unknown) => void} Listener */

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
`),
    swap('src/index.js', "export { fromCents", "export { createEvents } from './events.js'\nexport { fromCents"),
  ),
  step(
    'Save a cart once it is quiet',
    put('src/autosave.js', `/**
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
`),
    put('src/timers.d.ts', 'declare function setTimeout(run: () => void, ms: number): number\ndeclare function clearTimeout(timer: number | undefined): void\n'),
    swap('src/index.js', 'export { add,', "export { autosave } from './autosave.js'\nexport { add,"),
  ),
  step(
    'Test autosave with the real timer',
    append('test/cart.test.js', `
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
`),
  ),
  step('README: autosave', append('README.md', '\n## Autosave\n\n`autosave(save, quietMs).changed()` saves once a cart is quiet.\n')),
  step(
    'Add shipping',
    put('src/shipping.js', `/** Cents for one parcel. */
export const PARCEL = 490

/** @param {number} cents value of the goods */
export function shipping(cents) {
  return cents > 0 ? PARCEL : 0
}
`),
    swap('src/index.js', 'export { available', "export { shipping } from './shipping.js'\nexport { available"),
  ),
  step(
    'shipping: free from 50.00',
    swap('src/shipping.js', '/** @param {number} cents value', 'const FREE_FROM = 5000\n\n/** @param {number} cents value'),
    swap('src/shipping.js', 'return cents > 0 ?', 'return cents > 0 && cents < FREE_FROM ?'),
  ),
  step(
    'Test shipping',
    append('test/shop.test.js', `
test('large orders are sent free', () => {
  assert.equal(basket.shipping(4999), 490)
  assert.equal(basket.shipping(5000), 0)
})
`),
  ),
  step(
    'coupon: allow more codes',
    append('src/coupon.js', `
/**
 * @param {string} code
 * @param {number} percent
 */
export function addCoupon(code, percent) {
  if (percent < 0 || percent > 100) throw new RangeError('not a percent')
  COUPONS.set(code.toUpperCase(), percent)
}
`),
    swap('src/index.js', 'export { couponPercent', 'export { addCoupon, couponPercent'),
  ),
  step('money: describe fromCents', swap('src/money.js', '/** @param {number} cents */', '/**\n * For showing only; never count with it.\n * @param {number} cents\n */')),
  step(
    'cart: has',
    append('src/cart.js', `
/**
 * @param {Cart} cart
 * @param {string} sku
 */
export function has(cart, sku) {
  return cart.lines.some((line) => line.sku === sku)
}
`),
    swap('src/index.js', 'createCart, remove', 'createCart, has, remove'),
  ),
]
