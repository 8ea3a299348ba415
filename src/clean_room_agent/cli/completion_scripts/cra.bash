# Completion of cra for bash. A path that is not absolute (./cra) is not run for it: it may be anybody's.
_cra() {
    local program=cra how='' line
    [[ $1 == /* ]] && program=$1
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ -z $how ]]; then how=$line; else COMPREPLY+=("${line%%$'\t'*}"); fi
    done < <(_CRA_COMPLETE=bash command "$program" "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null)
    case $how in
        files) compopt -o default 2>/dev/null ;;
        folders) compopt -o dirnames 2>/dev/null ;;
    esac
}
complete -o nosort -F _cra cra 2>/dev/null || complete -F _cra cra
