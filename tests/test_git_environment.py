import subprocess

from uwf_git.git_environment import LOCAL_VARIABLES, without_local_variables


def test_every_local_variable_of_the_installed_git_is_known() -> None:
    told = subprocess.run(["git", "rev-parse", "--local-env-vars"], capture_output=True, check=True)

    assert set(told.stdout.decode().split()) <= LOCAL_VARIABLES


def test_local_variables_are_left_out_and_all_others_kept() -> None:
    kept = {"PATH": "/bin", "GIT_SSH_COMMAND": "ssh", "GIT_COMMITTER_NAME": "Ada"}
    local = {"GIT_DIR": "/a", "GIT_OBJECT_DIRECTORY": "/b", "GIT_NAMESPACE": "c"}

    assert without_local_variables({**kept, **local}) == kept
