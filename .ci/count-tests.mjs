// Prints `passed failed` from the JSON report of the test runner, given the report and the exit status of the run.
import { readFileSync } from 'node:fs'

const [path, status] = process.argv.slice(2)
let report = {}
try {
  report = JSON.parse(readFileSync(path, 'utf8'))
} catch {
  // The run ended before it could report: counted as one failure below.
}
const results = report.testResults ?? []
// A file that cannot be loaded has no tests that could fail.
const brokenFiles = results.filter((file) => file.status === 'failed' && file.assertionResults.length === 0).length
const failed = (report.numFailedTests ?? 0) + brokenFiles
// An error outside of any test fails the run, too; so does a run without tests.
const other = failed === 0 && (status !== '0' || !report.numPassedTests) ? 1 : 0
console.log(`${report.numPassedTests ?? 0} ${failed + other}`)
