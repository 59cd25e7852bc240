#!/bin/sh
# Go on with the thread that a name at a hub leads to, or begin it; for a job of a CI service.
#
# What to do is told by variables:
#   UWF_CI_HUB       where the threads are: a path or URL that git reaches without being asked
#   UWF_CI_NAME      the name, such as pr-17: it is the ref refs/names/pr-17 of the hub
#   UWF_CI_WORKFLOW  the workflow of a new thread, or its file: its commands may run, in each job
#   UWF_CI_PROMPT    the task of a new thread
#   UWF_CI_AGENT     the agents, one a line: a command for every role, or ROLE=COMMAND
#   UWF_CI_ANSWER    the answer to the question that the thread waits with: JSON, or front matter
#                    and a text; `/uwf answer` at its beginning is left away
#   UWF_CI_RUN       more options of `uwf thread run`, between blanks
#   UWF_CI_OUT       the folder for the files thread, status and question [uwf-ci]
# The exit status is that of `uwf thread run`, but 0 if the thread has completed or waits for an
# answer. 4: another job is at work on it.
set -eu

fail() {
	echo "error: $1" >&2
	exit 1
}

# Print the first field of a document with this name, or nothing.
field() {
	rest=${2#*"\"$1\":\""}
	[ "$rest" = "$2" ] || echo "${rest%%\"*}"
}

in_store() {
	git -C "$UWF_REPO" "$@"
}

# Read the thread that the hub has under the name; fail if it has none.
look_up() {
	found=$(in_store ls-remote origin "$name") || fail 'the hub cannot be asked'
	[ -n "$found" ] || return 1
	in_store fetch -q origin "+$name:$name" || fail 'the hub cannot be asked'
	thread=$(in_store cat-file blob "$name") || thread=''
	case $thread in
	'' | *[!0-9A-Z]*) fail "$name of the hub does not lead to a thread" ;;
	esac
}

# Wait for the name that another job is just giving: until it is there, its lock refuses ours.
await_name() {
	for _try in 1 2 3; do
		! look_up || return 0
		sleep 1
	done
	return 1
}

# Print the branches with this status, of the document of a thread.
list_branches() {
	printf '%s\n' "$2" | grep -Eo "\"thread\":\"[0-9A-Z]*\",\"status\":\"($1)\"" | cut -d '"' -f 4
}

# Read how the thread stands here, as the most urgent of its branches if it has split, which of
# them did not go on, and which thread asks a person: it, or its first branch that does.
look_at() {
	shown=$(uwf --format json thread show "$thread") || exit
	status=$(field status "$shown") held='' waiting='' asks=''
	case $status in
	waiting) waiting=$thread ;;
	split)
		held=$(list_branches 'ready|paused|failed' "$shown")
		waiting=$(list_branches waiting "$shown")
		urgent=$(field branchStatus "$shown") status=${urgent:-split}
		;;
	esac
	for each in $waiting; do
		shown=$(uwf --format json thread show "$each") || exit
		why=${shown#*'"waiting":{'}
		case ${why%%\}*} in
		*'"until"'*) ;; # it waits for the end of an agent's limit
		*) asks=${asks:-$each} ;;
		esac
	done
}

# Put the workflow's file, so that its commands may run here.
put_workflow() {
	[ -f "$workflow" ] || return 0
	put=$(uwf --format json workflow put "$workflow") || return
	# Its hash, since of this name the checkout may have another.
	workflow=$(field workflow "$put")
}

# Begin a thread, and give it the name. The hub gets both or neither, and of two jobs one wins.
begin() {
	: "${UWF_CI_WORKFLOW:?names what to begin}"
	printf %s "${UWF_CI_PROMPT:?is the task}" >"$work/prompt"
	begun=$(uwf --format json thread start "$workflow" --prompt-file "$work/prompt" "$@") || exit
	thread=$(field thread "$begun")
	blob=$(echo "$thread" | in_store hash-object -w --stdin)
	in_store push -q --atomic --force-with-lease="$name:" \
		origin "refs/threads/$thread" "$blob:$name"
}

: "${UWF_CI_HUB:?is the place of the threads}" "${UWF_CI_NAME:?is the name of a thread}"
name=refs/names/$UWF_CI_NAME
git check-ref-format "$name" || fail "$UWF_CI_NAME cannot be the name of a ref"
out=${UWF_CI_OUT:-uwf-ci}
mkdir -p "$out"
rm -f "$out/thread" "$out/status" "$out/question"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export UWF_REPO="$work/threads.git"
uwf init "$UWF_REPO" >"$work/log"
uwf remote add origin "$UWF_CI_HUB" >"$work/log"

while IFS= read -r agent; do
	[ -z "$agent" ] || set -- "$@" --agent "$agent"
done <<END
${UWF_CI_AGENT:-}
END

workflow=${UWF_CI_WORKFLOW:-}
if look_up; then
	# A thread that goes on needs no more of it than its trust.
	put_workflow || :
else
	[ -z "${UWF_CI_ANSWER:-}" ] || fail "no thread that waits has the name $UWF_CI_NAME"
	put_workflow || exit
	begin "$@" || await_name || fail 'the hub took neither the thread nor its name'
fi
uwf fetch origin "$thread" >"$work/log"
look_at
if [ -n "${UWF_CI_ANSWER:-}" ] && [ -z "$asks" ]; then
	# Of a job that is started once more, the answer is there.
	echo "note: thread $thread waits for no answer, and the answer is left away" >&2
elif [ -n "${UWF_CI_ANSWER:-}" ]; then
	printf '%s\n' "$UWF_CI_ANSWER" | tr -d '\r' |
		sed '1{s|^/uwf answer[[:space:]]*||;/^$/d;}' >"$work/answer"
	uwf thread answer "$asks" --file "$work/answer" >"$work/log"
	asks=''
fi
if [ "$status" = failed ]; then
	# A job that is started once more is to try once more.
	uwf thread retry "$thread" >"$work/log"
fi

# Each step is at the hub before the next begins. What ends this job ends the agent as well.
code=0 ended='' pid=''
trap 'ended=1; [ -z "$pid" ] || kill -TERM "$pid" || :' TERM INT HUP
if [ "$status" = completed ]; then
	echo "note: the thread of $UWF_CI_NAME has completed, and no other is begun" >&2
elif [ "$asks" != "$thread" ]; then
	# shellcheck disable=SC2086 # these are words
	uwf thread run "$thread" --claim --workdir "$PWD" "$@" ${UWF_CI_RUN:-} >"$work/log" &
	pid=$!
	wait "$pid" || code=$?
	[ -z "$ended" ] || wait "$pid" || code=$?
	pid=''
fi
if ! uwf push origin "$thread" >"$work/log"; then
	trap - EXIT
	fail "the hub did not take all of thread $thread, which is kept in $UWF_REPO"
fi

look_at
: >"$out/question"
if [ -n "$asks" ]; then
	# The run had nothing to do: it has been asked before, perhaps by a job that was faster.
	[ "$code" != 1 ] || [ -n "$held" ] || code=0
	uwf thread context "$asks" --prompt --last 1 >"$out/question"
fi
echo "$thread" >"$out/thread"
echo "$status" >"$out/status"
# shellcheck disable=SC2016 # the address may have a password in it
echo 'note: the store of this job is deleted; for another: `uwf clone "$UWF_CI_HUB" threads.git`' >&2
exit "$code"
