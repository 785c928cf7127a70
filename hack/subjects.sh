#!/usr/bin/env bash
# Reads subjects of commits, one a line, and prints those to change, with the fix. Exits with 1 if there are any.
# A file in the place of standard input is a message: its first line that is no comment is the subject.
# gitlint and commitlint do not check for the imperative, and ruff's list of words (D401) accepts "Supports".
set -euo pipefail
{ if [ $# = 1 ]; then grep -m 1 -vE '^(#|[[:space:]]*$)' "$1" || echo; else cat; fi; } | LC_ALL=C awk '
  /^(Merge |Revert "|Reapply "|(fixup|squash|amend)! )/ { next }
  {
    rest = characters = $0; fix = ""
    gsub(/[\200-\277]/, "", characters)  # mawk counts bytes
    sub(/^[A-Za-z0-9][A-Za-z0-9_.\/*-]*(, ?[A-Za-z0-9][A-Za-z0-9_.\/*-]*)*: /, "", rest)
    if (length(characters) > 72) fix = fix "; at most 72 characters, the rest into the body"
    if ($0 ~ /[. ]$|^ /) fix = fix "; no period at the end, no blanks around"
    if (rest == $0 && rest !~ /^[A-Z]/) fix = fix "; begin with a capital letter, or with \"area: \""
    split(rest, words, " "); verb = tolower(words[1]); sub(/,$/, "", verb)
    if (verb !~ /^[a-z-]+$/ || verb ~ /[aeiouy].*([^e]ed|ing)$/ && verb !~ /^embed$/ || verb ~ /[^su]s$/ && verb !~ /^(alias|bias|canvas)$/)
      fix = fix "; begin with a verb in the imperative: Add, not Added, Adds or Adding"
    if (fix) { print "\"" $0 "\": " substr(fix, 3); bad = 1 }
  }
  END { exit bad }'
