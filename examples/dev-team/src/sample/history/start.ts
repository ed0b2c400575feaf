import { put, type Step, step } from '../step.ts'

/** The first commit, tagged v1.0. */
export const START: Step = step(
  'Start the basket library',
  put(
    'package.json',
    `{
  "name": "basket",
  "version": "1.0.0",
  "type": "module",
  "exports": "./src/index.js",
  "scripts": {
    "test": "node --test"
  }
}
`,
  ),
  put('.gitignore', 'node_modules\n'),
  put(
    'tsconfig.json',
    `{
  "compilerOptions": {
    "allowJs": true,
    "checkJs": true,
    "noEmit": true,
    "strict": true,
    "skipLibCheck": true,
    "lib": ["es2022"],
    "module": "nodenext",
    "target": "es2022",
    "types": []
  },
  "include": ["src"]
}
`,
  ),
  put(
    'README.md',
    `# basket

A shopping basket that counts in whole cents.
`,
  ),
  put(
    'src/index.js',
    `export { add, createCart, remove, subtotal } from './cart.js'
export { fromCents, toCents } from './money.js'
`,
  ),
  put(
    'src/money.js',
    `/**
 * Whole cents, so that sums stay exact.
 * @param {number} amount
 */
export function toCents(amount) {
  return Math.round(amount * 100)
}

/** @param {number} cents */
export function fromCents(cents) {
  return cents / 100
}
`,
  ),
  put(
    'src/discount.js',
    `export const BULK_RATE = 0.1

/**
 * Is it a bulk quantity?
 * @param {number} quantity
 * @param {number} from
 */
export function isBulk(quantity, from) {
  return quantity >= from
}

/**
 * What is taken off.
 * @param {number} cents
 */
export function bulkDiscount(cents) {
  return Math.round(cents * BULK_RATE)
}
`,
  ),
  put(
    'src/cart.js',
    `import { bulkDiscount, isBulk } from './discount.js'

/**
 * @typedef {{ sku: string, price: number, quantity: number }} Line
 * @typedef {{ lines: Line[], bulkFrom: number }} Cart
 */

/** @returns {Cart} */
export function createCart() {
  return { lines: [], bulkFrom: 10 }
}

/**
 * @param {Cart} cart
 * @param {string} sku
 * @param {number} price in cents
 * @param {number} [quantity]
 */
export function add(cart, sku, price, quantity = 1) {
  const known = cart.lines.find((item) => item.sku === sku)
  if (known) known.quantity += quantity
  else cart.lines.push({ sku, price, quantity })
}

/**
 * @param {Cart} cart
 * @param {string} sku
 */
export function remove(cart, sku) {
  cart.lines = cart.lines.filter((item) => item.sku !== sku)
}

/** @param {Cart} cart */
export function subtotal(cart) {
  let sum = 0
  for (const item of cart.lines) {
    const full = item.price * item.quantity
    sum += isBulk(item.quantity, cart.bulkFrom) ? full - bulkDiscount(full) : full
  }
  return sum
}
`,
  ),
  put(
    'test/cart.test.js',
    `import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as basket from '../src/index.js'

const { add, createCart, remove, subtotal } = basket

test('an empty cart costs nothing', () => {
  assert.equal(subtotal(createCart()), 0)
})

test('prices and quantities add up', () => {
  const cart = createCart()
  add(cart, 'pen', 120, 2)
  add(cart, 'pad', 350)
  add(cart, 'pen', 120)
  assert.equal(subtotal(cart), 710)
})

test('the bulk price begins at the tenth piece', () => {
  const cart = createCart()
  add(cart, 'pen', 100, 10)
  assert.equal(subtotal(cart), 900)
})

test('what is removed costs nothing', () => {
  const cart = createCart()
  add(cart, 'pen', 120)
  remove(cart, 'pen')
  assert.equal(subtotal(cart), 0)
})
`,
  ),
  put(
    'test/prices.test.js',
    `import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as basket from '../src/index.js'

test('amounts become whole cents', () => {
  assert.equal(basket.toCents(19.99), 1999)
  assert.equal(basket.fromCents(1999), 19.99)
})
`,
  ),
)
