// What travels on a link: again, to the wrong one, too late, too large.
import './suites/replay.ts'
import './suites/astray.ts'
import './suites/restart.ts'
import './suites/answers.ts'
import './suites/late-answers.ts'
import './suites/sizes.ts'
import './suites/waiting.ts'
