export const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0)
export const count = <T>(items: readonly T[], fits: (item: T) => boolean) => items.filter(fits).length

export function tally(codes: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const code of codes) counts[code] = (counts[code] ?? 0) + 1
  return counts
}
