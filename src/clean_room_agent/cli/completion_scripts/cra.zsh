#compdef cra
# Completion of cra for zsh. A path that is not absolute (./cra) is not run for it: it may be anybody's.
_cra() {
    local program=cra how='' line value
    local -a offer
    [[ $words[1] == /* ]] && program=$words[1]
    while IFS= read -r line; do
        if [[ -z $how ]]; then how=$line; continue; fi
        value=${line%%$'\t'*}
        [[ $line == *$'\t'* ]] && offer+=("${value//:/\\:}:${line#*$'\t'}") || offer+=("${value//:/\\:}")
    done < <(_CRA_COMPLETE=zsh command $program "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)
    [[ $how == (files|folders) && $PREFIX == --*=* ]] && compset -P 1 '*='
    case $how in
        words) _describe -V cra offer ;;
        open) _describe -V cra offer -S '' ;;
        files) _files ;;
        folders) _files -/ ;;
    esac
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _cra "$@"; else compdef _cra cra; fi
