# Completion of cra for fish. A path that is not absolute (./cra) is not run for it: it may be anybody's.
# fish escapes each word for the quote that is open.
function __cra_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -l word (string unescape -- "$typed"; or string unescape -- "$typed'"; or string unescape -- "$typed\""; or printf '%s\n' "$typed")
    set -l program cra
    string match -q -- '/*' $words[1]; and set program $words[1]
    set -e words[1]
    set -l offer (env _CRA_COMPLETE=fish $program $words "$word" 2>/dev/null)
    set -l how $offer[1]
    set -e offer[1]
    set -l before (string match -r -- '^--[^=]*=' $word; or echo)
    set -l begun (string replace -r -- '^--[^=]*=' '' $word)
    switch "$how"
        case files
            printf '%s\n' $before(__fish_complete_path "$begun")
        case folders
            printf '%s\n' $before(__fish_complete_directories "$begun" '')
        case '*'
            printf '%s\n' $offer
    end
end
complete -c cra -f -k -a '(__cra_complete)'
