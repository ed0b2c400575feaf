import { append, put, type Step, step, swap } from '../step.ts'

/** Commits 44 to 64. */
export const FOURTH: readonly Step[] = [
  step('Say how to contribute', put('CONTRIBUTING.md', '# Contributing\n\nRun `npm test` before you send a change.\n')),
  step(
    'price-format: keep formatters',
    swap(
      'src/price-format.js',
      '/**\n * @param {number} cents',
      '/** @type {Map<string, Intl.NumberFormat>} */\nconst formatters = new Map()\n\n/**\n * @param {number} cents',
    ),
    swap(
      'src/price-format.js',
      "  return new Intl.NumberFormat(locale, { style: 'currency', currency }).format(cents / 100)",
      `  const key = locale + currency
  const formatter = formatters.get(key) ?? new Intl.NumberFormat(locale, { style: 'currency', currency })
  formatters.set(key, formatter)
  return formatter.format(cents / 100)`,
    ),
  ),
  step(
    'shipping: heavy goods',
    swap(
      'src/shipping.js',
      '/** @param {number} cents value of the goods */\nexport function shipping(cents) {',
      `/**
 * @param {number} cents value of the goods
 * @param {number} [kilograms]
 */
export function shipping(cents, kilograms = 0) {
  if (kilograms > 30) return PARCEL * 2`,
    ),
  ),
  step(
    'autosave: stop',
    swap(
      'src/autosave.js',
      '    changed() {',
      `    stop() {
      clearTimeout(timer)
    },
    changed() {`,
    ),
  ),
  step(
    'Test that a stopped autosave stays quiet',
    append(
      'test/cart.test.js',
      `
test('a stopped autosave stays quiet', async () => {
  let saves = 0
  const saver = basket.autosave(() => saves++, 20)
  saver.changed()
  saver.stop()
  await new Promise((resolve) => setTimeout(resolve, 40))
  assert.equal(saves, 0)
})
`,
    ),
  ),
  step(
    'Release 1.2.0',
    swap('package.json', '"1.1.0"', '"1.2.0"'),
    swap('CHANGELOG.md', '## 1.1.0', '## 1.2.0\n\n- Shipping, autosave, events.\n\n## 1.1.0'),
  ),
  step(
    'tax: reduced rates',
    append(
      'src/tax.js',
      `
/**
 * Books and food.
 * @param {string} country two letters
 */
export function reducedRateOf(country) {
  return rateOf(country) / 2
}
`,
    ),
  ),
  step(
    'Add receipts',
    put(
      'src/receipt.js',
      `import { subtotal } from './cart.js'
import { formatPrice } from './price-format.js'

/**
 * @param {import('./cart.js').Cart} cart
 * @param {string} currency
 */
export function receipt(cart, currency) {
  const lines = cart.lines.map(({ sku, quantity }) => \`\${quantity} x \${sku}\`)
  return [...lines, \`Total \${formatPrice(subtotal(cart), currency)}\`]
}
`,
    ),
  ),
  step(
    'Export and test receipts',
    swap('src/index.js', 'export { shipping }', "export { receipt } from './receipt.js'\nexport { shipping }"),
    append(
      'test/shop.test.js',
      `
test('a receipt ends with the total', () => {
  const cart = basket.createCart()
  basket.add(cart, 'pen', 120, 2)
  assert.deepEqual(basket.receipt(cart, 'EUR'), ['2 x pen', 'Total €2.40'])
})
`,
    ),
  ),
  step(
    'README: receipts',
    append('README.md', '\n## Receipts\n\n`receipt(cart, currency)` gives the lines to print.\n'),
  ),
  step(
    'receipt: describe',
    swap('src/receipt.js', '/**\n * @param', '/**\n * One text a line, the total last.\n * @param'),
  ),
  step(
    'stock: tell when little is left',
    append(
      'src/stock.js',
      `
/**
 * @param {Map<string, number>} stock
 * @param {number} [limit]
 */
export function runningLow(stock, limit = 3) {
  return [...stock].filter(([, left]) => left <= limit).map(([sku]) => sku)
}
`,
    ),
  ),
  step(
    'events: once',
    swap(
      'src/events.js',
      '    /** @param {string} name @param {unknown} value */',
      `    /** @param {string} name @param {Listener} listener */
    once(name, listener) {
      /** @type {Listener} */
      const first = (value) => {
        listeners.get(name)?.delete(first)
        listener(value)
      }
      this.on(name, first)
    },
    /** @param {string} name @param {unknown} value */`,
    ),
  ),
  step(
    'Test events',
    append(
      'test/shop.test.js',
      `
test('a listener is told, one for once is told once', () => {
  const events = basket.createEvents()
  const seen = []
  events.on('sold', (sku) => seen.push(sku))
  events.once('sold', (sku) => seen.push(sku + ' first'))
  events.emit('sold', 'pen')
  events.emit('sold', 'pad')
  assert.deepEqual(seen, ['pen', 'pen first', 'pad'])
})
`,
    ),
  ),
  step(
    'coupon: remove a code',
    append(
      'src/coupon.js',
      `
/** @param {string} code */
export function removeCoupon(code) {
  COUPONS.delete(code.toUpperCase())
}
`,
    ),
    swap('src/index.js', 'couponPercent }', 'couponPercent, removeCoupon }'),
  ),
  step(
    'Test added coupons',
    append(
      'test/shop.test.js',
      `
test('codes can be added and removed', () => {
  const { addCoupon, couponPercent, removeCoupon } = basket
  addCoupon('Spring', 15)
  assert.equal(couponPercent('SPRING'), 15)
  removeCoupon('spring')
  assert.equal(couponPercent('SPRING'), 0)
})
`,
    ),
  ),
  step(
    'discount: name the rate in percent',
    append('src/discount.js', '\n/** For texts. */\nexport const BULK_PERCENT = BULK_RATE * 100\n'),
  ),
  step(
    'cart: merge two carts',
    append(
      'src/cart.js',
      `
/**
 * @param {Cart} into
 * @param {Cart} other
 */
export function merge(into, other) {
  for (const { sku, price, quantity } of other.lines) add(into, sku, price, quantity)
}
`,
    ),
    swap('src/index.js', 'has, remove', 'has, merge, remove'),
  ),
  step(
    'Test merging',
    append(
      'test/cart.test.js',
      `
test('merged carts keep one line a product', () => {
  const [one, two] = [createCart(), createCart()]
  add(one, 'pen', 120)
  add(two, 'pen', 120)
  basket.merge(one, two)
  assert.equal(one.lines.length, 1)
  assert.equal(subtotal(one), 240)
})
`,
    ),
  ),
  step(
    'Release 1.3.0',
    swap('package.json', '"1.2.0"', '"1.3.0"'),
    swap('CHANGELOG.md', '## 1.2.0', '## 1.3.0\n\n- Receipts, merging of carts.\n\n## 1.2.0'),
  ),
  step('README: name the license', append('README.md', '\n## License\n\nMIT\n')),
]
