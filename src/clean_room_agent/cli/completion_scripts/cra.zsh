#compdef cra
# Completion of cra for zsh. A path that is not absolute (./cra) is not run for it: it may be anybody's.
# compadd escapes each word for the quote that is open.
_cra() {
    local program=cra how='' line typed=$QIPREFIX$PREFIX
    local -a names shown
    [[ $words[1] == /* ]] && program=$words[1]
    [[ -n $compstate[quote] ]] && typed+=${compstate[quote]#\$}
    while IFS= read -r line; do
        if [[ -z $how ]]; then how=$line; continue; fi
        names+=("${line%%$'\t'*}")
        [[ $line == *$'\t'* ]] && shown+=("${line/$'\t'/  -- }") || shown+=("$line")
    done < <(_CRA_COMPLETE=zsh command $program "${(@Q)words[2,CURRENT-1]}" "${(Q)typed}" 2>/dev/null)
    [[ $how == (files|folders) && $PREFIX == --*=* ]] && compset -P 1 '*='
    case $how in
        words) compadd -V cra -l -d shown -a -- names ;;
        files) _files ;;
        folders) _files -/ ;;
    esac
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _cra "$@"; else compdef _cra cra; fi
