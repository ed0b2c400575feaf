import { append, put, type Step, step, swap } from '../step.ts'

/** Commits 2 to 21. */
export const FIRST: readonly Step[] = [
  step('README: say how to install', append('README.md', '\n## Install\n\n    npm install basket\n')),
  step(
    'Test removing what is not there',
    append(
      'test/cart.test.js',
      `
test('removing what is not there changes nothing', () => {
  const cart = createCart()
  add(cart, 'pad', 350)
  remove(cart, 'pen')
  assert.equal(subtotal(cart), 350)
})
`,
    ),
  ),
  step(
    'money: refuse amounts that are not finite',
    swap(
      'src/money.js',
      '  return Math.round(amount * 100)',
      `  if (!Number.isFinite(amount)) throw new RangeError('not an amount')
  return Math.round(amount * 100)`,
    ),
  ),
  step(
    'Add tax',
    put(
      'src/tax.js',
      `export const DEFAULT_RATE = 0.2

/**
 * @param {number} cents
 * @param {number} [rate]
 */
export function tax(cents, rate = DEFAULT_RATE) {
  return Math.round(cents * rate)
}
`,
    ),
    swap('src/index.js', "from './money.js'\n", "from './money.js'\nexport { tax } from './tax.js'\n"),
  ),
  step(
    'Test tax',
    append(
      'test/prices.test.js',
      `
test('tax is rounded to whole cents', () => {
  assert.equal(basket.tax(1999), 400)
})
`,
    ),
  ),
  step(
    'README: show tax',
    append('README.md', '\n## Tax\n\n`tax(cents, rate)` gives the tax in cents; the rate is 20 % unless given.\n'),
  ),
  step(
    'Add formatPrice',
    put(
      'src/format.js',
      `/**
 * @param {number} cents
 * @param {string} currency
 */
export function formatPrice(cents, currency) {
  return new Intl.NumberFormat('en', { style: 'currency', currency }).format(cents / 100)
}
`,
    ),
    swap('src/index.js', 'export { fromCents', "export { formatPrice } from './format.js'\nexport { fromCents"),
  ),
  step(
    'Test formatPrice',
    append(
      'test/prices.test.js',
      `
test('prices show their currency', () => {
  assert.equal(basket.formatPrice(1999, 'EUR'), '€19.99')
})
`,
    ),
  ),
  step(
    'cart: count pieces',
    append(
      'src/cart.js',
      `
/** @param {Cart} cart */
export function count(cart) {
  return cart.lines.reduce((pieces, { quantity }) => pieces + quantity, 0)
}
`,
    ),
    swap('src/index.js', 'export { add, createCart', 'export { add, count, createCart'),
    append(
      'test/cart.test.js',
      `
test('pieces are counted', () => {
  const cart = createCart()
  add(cart, 'pen', 120, 2)
  add(cart, 'pad', 350)
  assert.equal(basket.count(cart), 3)
})
`,
    ),
  ),
  step(
    'package.json: keywords',
    swap('package.json', '  "type": "module",', '  "keywords": ["cart", "basket", "shop"],\n  "type": "module",'),
  ),
  step(
    'tax: say how it is rounded',
    swap('src/tax.js', '/**\n * @param {number} cents', '/**\n * Rounded once, on the sum.\n * @param {number} cents'),
  ),
  step(
    'Add coupons',
    put(
      'src/coupon.js',
      `/** @type {Map<string, number>} */
const COUPONS = new Map([['WELCOME', 5], ['FRIEND', 10]])

/**
 * Percent that a code takes off, 0 for an unknown one.
 * @param {string} code
 */
export function couponPercent(code) {
  return COUPONS.get(code) ?? 0
}
`,
    ),
    swap('src/index.js', 'export { formatPrice', "export { couponPercent } from './coupon.js'\nexport { formatPrice"),
  ),
  step(
    'Test coupons',
    put(
      'test/shop.test.js',
      `import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as basket from '../src/index.js'

test('a code takes its percent off', () => {
  assert.equal(basket.couponPercent('WELCOME'), 5)
})
`,
    ),
  ),
  step(
    'format: take a locale',
    swap('src/format.js', 'formatPrice(cents, currency) {', "formatPrice(cents, currency, locale = 'en') {"),
    swap('src/format.js', "NumberFormat('en'", 'NumberFormat(locale'),
    swap('src/format.js', ' * @param {string} currency', ' * @param {string} currency\n * @param {string} [locale]'),
  ),
  step(
    'cart: clear',
    append(
      'src/cart.js',
      `
/** @param {Cart} cart */
export function clear(cart) {
  cart.lines = []
}
`,
    ),
    swap('src/index.js', 'add, count', 'add, clear, count'),
    append(
      'test/cart.test.js',
      `
test('a cleared cart is empty', () => {
  const cart = createCart()
  add(cart, 'pen', 120)
  basket.clear(cart)
  assert.equal(basket.count(cart), 0)
})
`,
    ),
  ),
  step('Start a changelog', put('CHANGELOG.md', '# Changelog\n\n## Unreleased\n\n- Tax, coupons, prices as text.\n')),
  step(
    'coupon: ignore case',
    swap('src/coupon.js', 'COUPONS.get(code)', 'COUPONS.get(code.toUpperCase())'),
    append(
      'test/shop.test.js',
      `
test('the case of a code does not matter', () => {
  assert.equal(basket.couponPercent('friend'), 10)
})
`,
    ),
  ),
  step(
    'money: add sum',
    append(
      'src/money.js',
      `
/** @param {number[]} amounts in cents */
export function sum(amounts) {
  return amounts.reduce((all, one) => all + one, 0)
}
`,
    ),
  ),
  step(
    'README: coupons',
    append('README.md', '\n## Coupons\n\n`couponPercent(code)` gives the percent that a code takes off.\n'),
  ),
  step(
    'cart: describe subtotal',
    swap(
      'src/cart.js',
      '/** @param {Cart} cart */\nexport function subtotal',
      '/**\n * Before tax, in cents.\n * @param {Cart} cart\n */\nexport function subtotal',
    ),
  ),
]
