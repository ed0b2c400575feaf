import { append, move, put, type Step, step, swap } from '../step.ts'

/** Commits 23 to 33. */
export const SECOND: readonly Step[] = [
  step(
    'Test an unknown coupon',
    append(
      'test/shop.test.js',
      `
test('an unknown code takes nothing off', () => {
  assert.equal(basket.couponPercent('NOPE'), 0)
})
`,
    ),
  ),
  step(
    'Add stock',
    put(
      'src/stock.js',
      `/** @returns {Map<string, number>} */
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
`,
    ),
  ),
  step('README: stock', append('README.md', '\n## Stock\n\nA stock tells how many pieces are `available`.\n')),
  step(
    'Export stock, test it',
    swap(
      'src/index.js',
      'export { tax }',
      "export { available, createStock, receive } from './stock.js'\nexport { tax }",
    ),
    append(
      'test/shop.test.js',
      `
test('what is received is available', () => {
  const { available, createStock, receive } = basket
  const stock = createStock()
  receive(stock, 'pen', 3)
  receive(stock, 'pen', 2)
  assert.equal(available(stock, 'pen'), 5)
  assert.equal(available(stock, 'pad'), 0)
})
`,
    ),
  ),
  step(
    'Test negative prices',
    append(
      'test/prices.test.js',
      `
test('money given back shows a minus', () => {
  assert.equal(basket.formatPrice(-500, 'USD'), '-$5.00')
})
`,
    ),
  ),
  step(
    'Rename format.js to price-format.js',
    move('src/format.js', 'src/price-format.js'),
    swap('src/index.js', "'./format.js'", "'./price-format.js'"),
  ),
  step(
    'tax: rates by country',
    append(
      'src/tax.js',
      `
/** @type {Record<string, number>} */
const RATES = { de: 0.19, fr: 0.2, jp: 0.1 }

/** @param {string} country two letters */
export function rateOf(country) {
  return RATES[country] ?? DEFAULT_RATE
}
`,
    ),
  ),
  step(
    'Export and test tax rates',
    swap('src/index.js', 'export { tax }', 'export { rateOf, tax }'),
    append(
      'test/prices.test.js',
      `
test('rates differ by country', () => {
  assert.equal(basket.tax(1000, basket.rateOf('jp')), 100)
})
`,
    ),
  ),
  step(
    'stock: reserve pieces',
    append(
      'src/stock.js',
      `
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
`,
    ),
    swap('src/index.js', 'createStock, receive }', 'createStock, receive, reserve }'),
  ),
  step(
    'Test reserving',
    append(
      'test/shop.test.js',
      `
test('only what is there can be reserved', () => {
  const { createStock, receive, reserve } = basket
  const stock = createStock()
  receive(stock, 'pen', 1)
  assert.equal(reserve(stock, 'pen', 1), true)
  assert.equal(reserve(stock, 'pen', 1), false)
})
`,
    ),
  ),
  step(
    'Release 1.1.0',
    swap('package.json', '"1.0.0"', '"1.1.0"'),
    swap('CHANGELOG.md', '## Unreleased', '## 1.1.0'),
    append('CHANGELOG.md', '- Stock, tax rates by country.\n'),
  ),
]
