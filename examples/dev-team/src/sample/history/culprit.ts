import { type Step, step, swap } from '../step.ts'

/** Commit 22: new names and comments in several places, and one comparison that should have stayed. */
export const CULPRIT: Step = {
  ...step(
    'Call the lines of a cart lines, describe discounts',
    swap(
      'src/cart.js',
      `  const known = cart.lines.find((item) => item.sku === sku)
  if (known) known.quantity += quantity
`,
      `  const same = cart.lines.find((line) => line.sku === sku)
  if (same) same.quantity += quantity
`,
    ),
    swap('src/cart.js', 'filter((item) => item.sku !== sku)', 'filter((line) => line.sku !== sku)'),
    swap(
      'src/cart.js',
      `  let sum = 0
  for (const item of cart.lines) {
    const full = item.price * item.quantity
    sum += isBulk(item.quantity, cart.bulkFrom) ? full - bulkDiscount(full) : full
  }
  return sum
`,
      `  let cents = 0
  for (const line of cart.lines) {
    const full = line.price * line.quantity
    cents += isBulk(line.quantity, cart.bulkFrom) ? full - bulkDiscount(full) : full
  }
  return cents
`,
    ),
    swap(
      'src/discount.js',
      'export const BULK_RATE',
      '/** Share of the price that is taken off when many pieces are bought. */\nexport const BULK_RATE',
    ),
    swap(
      'src/discount.js',
      ` * Is it a bulk quantity?
 * @param {number} quantity
 * @param {number} from
 */
export function isBulk(quantity, from) {
  return quantity >= from
`,
      ` * Whether so many pieces are sold at the bulk price.
 * @param {number} quantity pieces of one line
 * @param {number} from pieces at which the bulk price begins
 */
export function isBulk(quantity, from) {
  return quantity > from
`,
    ),
    swap('src/discount.js', ' * What is taken off.\n', ' * What is taken off the price of a line, in whole cents.\n'),
    swap('README.md', 'that counts in whole cents.', 'that counts in whole cents. Many pieces of one line cost less.'),
  ),
  culprit: true,
}
