//! Generator of scripts that use all of bash's syntax, and run or only mention blocked commands.

use super::differential::BLOCKED;

/// A generator of scripts. The same seed produces the same scripts.
pub(super) struct Scripts {
    state: u64,
    /// The directory of the stubs.
    programs: String,
    names: usize,
}

const HARMLESS: &[&str] = &[
    "true",
    "ls",
    ":",
    "echo a b",
    "cat f",
    "echo 'x y' \"z\"",
    "printf '%s\\n' a",
    "false",
    "echo a=b",
    "test -e f",
    "[ -n x ]",
    "cd .",
    "echo \"#no\" # comment",
    "echo {a,b}{1..3}",
    "echo ~ $HOME",
    "x=1 true",
    "echo sudo",
    "echo 'sudo x'",
    "echo \"sudo; x\"",
    "grep sudo f",
    "echo x >f",
    "cat <f",
    "true 2>&1 >/dev/null",
    "[[ a == b ]]",
    "(( 1 + 1 ))",
    "echo $((1+2))",
    "echo \\# sudo",
    "# sudo x",
    "true # ; sudo x",
    "echo a\\ b",
    "echo 'it'\\''s sudo'",
    "local x",
    "export X=1",
    "set --",
    "echo $'a\\'b'",
];

impl Scripts {
    pub(super) fn new(seed: u64, programs: &str) -> Self {
        Self {
            state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5DEE_CE66,
            programs: programs.to_owned(),
            names: 0,
        }
    }

    /// The next number of SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap_or(0)
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("n{}", self.names)
    }

    /// The next script.
    pub(super) fn script(&mut self) -> String {
        self.names = 0;
        let depth = self.below(5);
        let mut script = self.list(depth);
        if self.one_in(3) {
            for _ in 0..=self.below(3) {
                script = self.spoiled(&script);
            }
        }
        if self.one_in(30) {
            script = script.replace('\n', "\r\n");
        }
        script
    }

    /// The text with an insertion, a deletion or a duplication.
    fn spoiled(&mut self, text: &str) -> String {
        let mut places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        places.push(text.len());
        let from = places[self.below(places.len())];
        let to = places[self.below(places.len())];
        let (head, tail) = text.split_at(from);
        match self.below(8) {
            0..=4 => {
                let put = self.pick(&[
                    " ", "\t", "\n", "\\\n", "\\", "'", "\"", "`", "$", "(", ")", "{", "}", ";",
                    "&", "|", "<", ">", "#", " #", "\u{a0}", "\u{2003}", "\r", "\u{b}", "\u{c}",
                    "!", "*", "?", "~", "=", ",", "$'", "$\"", "$(", "<(", "${", "$((", "((", "))",
                    "[[ ", " ]]", "<<E\n", "\nE\n", "<<<", "&>", "|&", ";;", ";&", " in ", "do ",
                    "\u{7f}", "\u{1}", "é", "\\\r\n", " -", "--", "^", "%", "@", "''",
                ]);
                format!("{head}{put}{tail}")
            }
            5 => head.chars().chain(tail.chars().skip(1)).collect(),
            6 => {
                let (start, end) = (from.min(to), from.max(to).min(from.min(to) + 12));
                let piece = text.get(start..end).unwrap_or_default();
                format!("{head}{piece}{tail}")
            }
            _ => {
                let end = from.min(to);
                let piece: String = text[end..].chars().take(self.below(6)).collect();
                text.replacen(&piece, "", 1)
            }
        }
    }

    fn list(&mut self, depth: usize) -> String {
        let mut list = self.piece(depth);
        for _ in 0..self.below(3) {
            let joint = self.pick(&[
                "; ", "\n", " && ", " || ", " | ", " & ", "\n\n", ";\n", " |& ", " &\n", " &&\n",
            ]);
            let next = self.piece(depth);
            list = if list.contains("<<") && !joint.starts_with('\n') {
                format!("{list}\n{next}")
            } else {
                format!("{list}{joint}{next}")
            };
        }
        list
    }

    fn piece(&mut self, depth: usize) -> String {
        if depth > 0 && !self.one_in(5) {
            let inner = if self.one_in(3) {
                self.list(depth - 1)
            } else {
                self.piece(depth - 1)
            };
            return self.wrapped(&inner);
        }
        match self.below(10) {
            0..=3 => self.pick(HARMLESS).to_owned(),
            4..=7 => self.blocked(),
            8 => self.indirect(),
            _ => self.mention(),
        }
    }

    /// A script that runs a blocked command directly.
    fn blocked(&mut self) -> String {
        let word = self.word();
        let before = self.pick(&[
            "",
            "",
            "",
            "A=1 ",
            "A='b c' B=\"d\" ",
            ">out ",
            "2>&1 ",
            "</dev/null ",
            "A=(1 2); ",
            "! ",
            "time ",
            "command ",
            "builtin command ",
            "env ",
            "env -i ",
            "env A=1 ",
            "exec ",
            "nice ",
            "nohup ",
            "time -p ",
            "timeout 3 ",
            "setsid ",
            "stdbuf -o0 ",
            "x=y\\ z ",
            "{fd}>out ",
            "3>out ",
            "a[1]=2 ",
            "a+=x ",
            "coproc ",
            "command -p ",
            "command -- ",
            "env -- ",
            "env -u X ",
            "env - ",
            "\\command ",
            "co'mm'and ",
            "true | xargs ",
            "nice -n 5 ",
            "nice -5 ",
            "timeout -k 1 2 ",
            "exec -a x ",
            "&>out ",
            ">|out ",
            "<>out ",
            "! time ",
            "time ! ",
            "x= ",
            "x=# ",
            "x=$'\\n' ",
            "env 'A=b c' ",
            "env -S ",
            "env -S'A=1 ' ",
            "a[\"x\"]=1 ",
            "a[$i]=2 ",
            "a['x y']=3 ",
            "a[1 + 2]=4 ",
            "a[b[0]]=5 ",
            "a[x;y]=6 ",
            "a[\\x]+=7 ",
            "a[\"$x\"]=8 ",
            "a[1&]=9 ",
        ]);
        let after = self.pick(&[
            "", "", " x", " -rf", " 'a b'", " >out", " x # y", " \\\n x", " &", " | cat", " <f",
        ]);
        format!("{before}{word}{after}")
    }

    /// The word of a blocked command in some spelling.
    fn word(&mut self) -> String {
        let name = self.pick(BLOCKED);
        let cut = 1 + self.below(name.len() - 1);
        let (head, tail) = name.split_at(cut);
        let code = |c: char| u32::from(c);
        match self.below(34) {
            0..=3 => name.to_owned(),
            4 => format!("'{head}'{tail}"),
            5 => format!("{head}\"{tail}\""),
            6 => name.chars().map(|c| format!("\\{c}")).collect(),
            7 => name
                .chars()
                .map(|c| format!("$'\\x{:x}'", code(c)))
                .collect(),
            8 => format!(
                "$'{}'",
                name.chars()
                    .map(|c| format!("\\{:o}", code(c)))
                    .collect::<String>()
            ),
            9 => format!(
                "$'{head}\\u{:04x}{}'",
                code(tail.chars().next().unwrap_or('x')),
                &tail[1..]
            ),
            10 => format!("{}/{name}", self.programs),
            11 => format!("{head}\\\n{tail}"),
            12 => format!("{head}''\"\"{tail}"),
            13 => format!("$\"{name}\""),
            14 => format!("{head}{{{tail},z}}"),
            15 => format!("{{{name},z}}"),
            16 => format!("v={name}; $v"),
            17 => format!("${{v:-{name}}}"),
            18 => format!("{head}${{v}}{tail}"),
            19 => format!(
                "{}/../{}/{head}*",
                self.programs,
                self.programs.rsplit('/').next().unwrap_or("bin")
            ),
            20 => format!("{}/?{}", self.programs, &name[1..]),
            21 => format!("$(echo {name})"),
            22 => format!("`echo {name}`"),
            23 => format!("v=x{name}; ${{v#x}}"),
            24 => format!("v={}; ${{v,,}}", name.to_uppercase()),
            25 => format!("set -- {name}; \"$@\""),
            26 => format!("{head}$@{tail}"),
            27 => format!("cd {}; ./{name}", self.programs),
            28 => format!("$'{head}\\\n{tail}'"),
            29 => format!("{name}${{IFS}}x"),
            30 => format!("{head}$''{tail}"),
            31 => format!("\"{head}\\\n{tail}\""),
            32 => format!("{{,{name}}}"),
            _ => format!("{head}{{,}}{tail}"),
        }
    }

    /// A script that runs a blocked command through builtins and variables of bash.
    fn indirect(&mut self) -> String {
        let name = self.pick(BLOCKED);
        let path = format!("{}/{name}", self.programs);
        let n = self.name();
        match self.below(123) {
            0 => format!("hash -p {path} {n}; {n}"),
            1 => format!("BASH_CMDS[{n}]={path}; {n}"),
            2 => format!("PS4='$({name} x)'; set -x; true"),
            3 => format!("{n}='$({name})'; echo \"${{{n}@P}}\""),
            4 => format!("{n}='a[$({name})]'; echo $(({n}))"),
            5 => format!("{n}='a[$({name})]'; (( {n} ))"),
            6 => format!("[[ -v 'a[$({name})]' ]]"),
            7 => format!("test -v 'a[$({name})]'"),
            8 => format!("printf -v 'a[$({name})]' x"),
            9 => format!("read 'a[$({name})]' <<E\nx\nE"),
            10 => format!("unset 'a[$({name})]'"),
            11 => format!("declare 'a[$({name})]=1'"),
            12 => format!("let 'a[$({name})]=1'"),
            13 => format!("{n}='a[$({name})]'; [[ {n} -eq 0 ]]"),
            14 => format!("{n}='a[$({name})]'; echo ${{b[{n}]}}"),
            15 => format!("mapfile -C '{name};' -c 1 <<E\nx\nE"),
            16 => format!("mapfile -C {name} -c 1 <<E\nx\nE"),
            17 => format!("readarray -C {name} -c1 a <<E\nx\nE"),
            18 => format!("trap {name} EXIT"),
            19 => format!("trap '{name} x' DEBUG; true"),
            20 => format!("trap -- '{name}' ERR; false"),
            21 => format!("shopt -s expand_aliases\nalias {n}={name}\n{n} x"),
            22 => format!("shopt -s expand_aliases\nBASH_ALIASES[{n}]={name}\n{n} x"),
            23 => format!("shopt -s expand_aliases\nalias {n}='true; '\\\n'{name}'\n{n}"),
            24 => format!("env 'BASH_FUNC_{n}%%=() {{ {name}; }}' bash -c {n}"),
            25 => format!("{n}() {{ {name}; }}; export -f {n}; bash -c {n}"),
            26 => format!("command_not_found_handle() {{ {name}; }}; nosuch"),
            27 => format!("eval {name}"),
            28 => format!("eval '{name}' x"),
            29 => format!("eval \"{name}\" \\; true"),
            30 => format!("source /dev/stdin <<E\n{name}\nE"),
            31 => format!(". <(echo {name})"),
            32 => format!("bash <<E\n{name} x\nE"),
            33 => format!("bash -s <<'E'\n{name} x\nE"),
            34 => format!("echo {name} | bash"),
            35 => format!("printf {name} | sh -s"),
            36 => format!("bash <<< {name}"),
            37 => format!("echo {name} | xargs -I% %"),
            38 => format!("echo {name} x | xargs env"),
            39 => format!("echo x | xargs {name}"),
            40 => format!("echo x | xargs -n 1 -I{{}} sh -c '{name} {{}}'"),
            41 => format!("find . -exec {name} {{}} \\;"),
            42 => format!("find . -exec sh -c '{name} \"$1\"' _ {{}} +"),
            43 => format!("awk 'BEGIN {{ system(\"{name}\") }}'"),
            44 => format!("awk 'BEGIN {{ print \"x\" | \"{name}\" }}'"),
            45 => format!("echo x | sed 's/x/{name}/e'"),
            46 => format!("sed '1e {name}' <<E\nx\nE"),
            47 => format!("BASH_ENV=f; echo {name} >f; export BASH_ENV; bash -c true"),
            48 => format!("flock f {name}"),
            49 => format!("flock f -c '{name}'"),
            50 => format!("declare -i {n}; {n}='a[$({name})]'"),
            51 => format!("declare -n {n}='a[$({name})]'; {n}=1"),
            52 => format!("for {n} in 'a[$({name})]'; do : $(({n})); done"),
            53 => format!("set -- 'a[$({name})]'; : $(($1))"),
            54 => format!("{n}=('a[$({name})]'); : $(({n}[0]))"),
            55 => format!("export {n}='a[$({name})]'; echo ${{b[{n}]}}"),
            56 => format!("wait -p 'a[$({name})]' -n; : ${{{n}:='a[$({name})]'}} $(({n}))"),
            57 => format!("compgen -C {name} x"),
            58 => format!("compgen -W '$({name})' x"),
            59 => format!("echo {name} >f; export BASH_ENV=f; bash -c true"),
            60 => format!("printf -v PS4 '$({name})'; set -x; :"),
            61 => format!("read -r PS4 <<'E'\n$({name})\nE\nset -x; :"),
            62 => format!("for PS4 in '$({name})'; do set -x; :; done"),
            63 => format!(": ${{PS4:='$({name})'}}; PS4=; : ${{PS4:='$({name})'}}; set -x; :"),
            64 => format!("declare -n {n}=PS4; {n}='$({name})'; set -x; :"),
            65 => format!("env PS4='$({name})' bash -xc :"),
            66 => format!("{n}='a[$({name})]'; x=abc; echo ${{x:{n}}}"),
            67 => format!("jobs -x {name} x"),
            68 => format!("set -o history; history -s {name}; fc -s"),
            69 => format!("{n}='a[$({name})]'; echo ${{!{n}}}"),
            70 => format!("{n}='a[$({name})]' bash -c 'echo $(({n}))'"),
            71 => format!("echo 'a[$({name})]' | {{ read {n}; echo $(({n})); }}"),
            72 => format!("PS4='\044({name})' bash -xc :"),
            73 => format!("{n}='x[$({name})]'; a=(1); a[{n}]=2"),
            74 => format!("export -n PS4='`{name}`'; set -x; :"),
            75 => format!("coproc {n} {{ {name}; }}; wait"),
            76 => format!("echo ${{{n}:-<({name})}}"),
            77 => format!("echo ${{{n}:-a>({name})b}} \"${{{n}:-<({name})}}\""),
            78 => format!("{n}=a; echo ${{{n}/<({name})/b}} ${{{n}#<({name})}}"),
            79 => format!("[[ -e <({name}) ]]"),
            80 => format!("[[ a == <({name}) || <({name}) == b ]]"),
            81 => format!("[[ a =~ (<({name})) ]]"),
            82 => format!("[[ a == @(b|<({name})) ]]"),
            83 => format!("echo a >&'$({name})'"),
            84 => format!("echo a >&\"\\$({name})\""),
            85 => format!("{n}='$({name})'; echo a >&${n}"),
            86 => format!("{n}='$({name})'; echo a &>${n} >& \"${n}\""),
            87 => format!("{n}=(a)b {name}"),
            88 => format!("{n}=(a){name}"),
            89 => format!("echo a >&-{name}; >& -{name}"),
            90 => format!("<&-{name}; 3>&-{name} x"),
            91 => format!("((x<<\"1\"))\n{name}\n1\n"),
            92 => format!("(( x<<'1' ))\n{name}\n1\n"),
            93 => format!("echo $((x<<\"E\"))\n{name}\nE\n"),
            94 => format!("echo $'\\c\\\\'; {name} #'"),
            95 => format!("echo $'\\c\\' {name} '; {name}'"),
            96 => format!("echo `echo a\\\n{name}`"),
            97 => format!("echo `# \\\n{name}`"),
            98 => format!("echo \"`echo '\\\n'; {name}`\""),
            99 => format!("{n}='a['; m='$({name})]'; echo $((${n}$m))"),
            100 => format!("{n}='a[$'; m='({name})]'; : $((${n}$m))"),
            101 => format!("{n}='$({name})'; : $((a[${n}])); a[${n}]=1"),
            102 => format!("{n}='$({name})'; [[ -v a[${n}] ]]; let \"a[${n}]=1\""),
            103 => format!("{{a[0]}}>f {name}"),
            104 => format!("99999999999>f {name}"),
            105 => format!("declare -A a; a[<({name})]=1; unset 'a[<({name})]'"),
            106 => format!("sh -c '((  {name} ) )'; sh -c 'echo a &> f {name}'"),
            107 => format!("declare -a {n}='($({name}))'"),
            108 => format!("declare -A '{n}=([x]=$({name}))'"),
            109 => format!("{n}='($({name}))'; declare -a a=\"${n}\""),
            110 => format!("f() {{ local -a 'a=(<({name}))'; }}; f; readonly -a b='(`{name}`)'"),
            111 => format!("{n}=(1); declare {n}='($({name}))'"),
            112 => format!("echo ${{{n}['$({name})']}} ${{{n}[\"\\$({name})\"]}}"),
            113 => format!("{n}=(['$({name})']=1 [a['$({name})']]=2)"),
            114 => format!("RANDOM='{n}[$({name})]'; OPTIND='{n}[$({name})]'"),
            115 => format!("exec {{{n}['$({name})']}}>f"),
            116 => format!("echo a >&'<({name})'; echo a >&\">({name})\""),
            117 => format!("{n}=1; echo \"${{{n}#<({name})}}\" \"${{{n}//1/<({name})}}\""),
            118 => format!("eval -- {name}; builtin eval -- '{name} x'"),
            119 => format!("printf -v {n} -v PS4 '$({name})'; set -x; :"),
            120 => format!("jobs -x -- {name}; exec -- {name}"),
            121 => format!("trap -- '{name}' EXIT; wait -p {n} -p {n} -n"),
            _ => format!("sh -c '[[ a && {name} ]]'; dash -c 'echo {{a,b}} |& {name}'"),
        }
    }

    /// A script that mentions the name of a blocked command but does not run it.
    fn mention(&mut self) -> String {
        let name = self.pick(BLOCKED);
        match self.below(14) {
            0 => format!("echo '; {name} x'"),
            1 => format!("echo \"a; {name} \\\"x\\\"\""),
            2 => format!("cat <<'E'\n{name} x\n$({name})\nE"),
            3 => format!("cat <<E\n{name} x\nE"),
            4 => format!("cat <<-E >f\n\t{name}\n\tE"),
            5 => format!("true # {name}"),
            6 => format!("case {name} in {name}) true;; esac"),
            7 => format!("[[ {name} == {name} ]]"),
            8 => format!("for i in {name}; do echo $i; done"),
            9 => format!("echo $'\\'; {name}'"),
            10 => format!("x={name}"),
            11 => format!("echo a >{name}"),
            12 => format!("cat <<E <<F\n{name}\nE\n{name}\nF"),
            _ => format!("echo \\; {name}"),
        }
    }

    /// The script inside of another construct that runs it.
    fn wrapped(&mut self, inner: &str) -> String {
        let quoted = inner.replace('\'', "'\\''");
        let doubled: String = inner
            .chars()
            .flat_map(|c| {
                let escaped = matches!(c, '"' | '\\' | '$' | '`');
                escaped
                    .then_some('\\')
                    .into_iter()
                    .chain(std::iter::once(c))
            })
            .collect();
        let ansi: String = inner
            .chars()
            .map(|c| match c {
                '\'' => "\\'".to_owned(),
                '\\' => "\\\\".to_owned(),
                '\n' => "\\n".to_owned(),
                other => other.to_string(),
            })
            .collect();
        let n = self.name();
        let end = format!("E{}", self.below(1_000_000));
        match self.below(46) {
            0 => format!("( {inner}\n)"),
            1 => format!("{{ {inner}\n}}"),
            2 => format!("if true; then {inner}\nfi"),
            3 => format!("if {inner}\nthen :; else :; fi"),
            4 => format!("if false; then :; elif true; then {inner}\nfi"),
            5 => format!("for i in 1; do {inner}\ndone"),
            6 => format!("for ((i=0; i<1; i++)); do {inner}\ndone"),
            7 => format!("for i in 1\n{{ {inner}\n}}"),
            8 => format!("while {inner}\ndo break; done"),
            9 => format!("until false; do {inner}\nbreak; done"),
            10 => format!("case x in (x) {inner}\n;; esac"),
            11 => format!("case x in y) ;; *) {inner}\nesac"),
            12 => format!("case x in x) :;& y|z) {inner}\n;;& esac"),
            13 => format!("{n}() {{ {inner}\n}}; {n}"),
            14 => format!("function {n} {{ {inner}\n}}; {n}"),
            15 => format!("function {n} () (\n{inner}\n); {n}"),
            16 => format!("{n}()\n(\n{inner}\n)\n{n} a"),
            17 => format!("{n}() if true; then {inner}\nfi; {n}"),
            18 => format!("bash -c '{quoted}'"),
            19 => format!("bash -c \"{doubled}\""),
            20 => format!("bash -c $'{ansi}'"),
            21 => format!("env A=1 bash -ec '{quoted}'"),
            22 => format!("timeout 3 sh -c '{quoted}'"),
            23 => format!("bash <<'{end}'\n{inner}\n{end}"),
            24 => format!("bash <<{end}\n{inner}\n{end}"),
            25 => format!("bash -s <<\\{end}\n{inner}\n{end}"),
            26 => format!(
                "bash <<-\"{end}\"\n\t{}\n\t{end}",
                inner.replace('\n', "\n\t")
            ),
            27 => format!("cat <<{end} | bash\n{inner}\n{end}"),
            28 => format!("eval '{quoted}'"),
            29 => format!("eval \"{doubled}\""),
            30 => format!("echo $( {inner}\n)"),
            31 => format!("echo \"$( {inner}\n)\""),
            32 => format!("x=$( {inner}\n)"),
            33 => format!("cat <( {inner}\n)"),
            34 => format!("true > >( {inner}\n)"),
            35 => format!(
                "echo `{}`",
                inner
                    .replace('\\', "\\\\")
                    .replace('`', "\\`")
                    .replace('$', "\\$")
            ),
            36 => format!("cat <<{end}\n$( {inner}\n)\n{end}"),
            37 => format!("echo ${{x:-$( {inner}\n)}}"),
            38 => format!("echo $(( 1 + $( {inner}\n) ))"),
            39 => format!("[[ -n $( {inner}\n) ]]"),
            40 => format!("coproc {{ {inner}\n}}; wait"),
            41 => format!("{{ {inner}\n}} >out 2>&1"),
            42 => format!("# it's a \"comment\n{inner}"),
            43 => format!("true && {{ {inner}\n}} || true"),
            44 => format!("echo x | while read -r y; do {inner}\ndone"),
            _ => format!("find . -maxdepth 0 -exec bash -c '{quoted}' \\;"),
        }
    }
}
