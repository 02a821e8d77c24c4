<?php
rename(F, U . '/renamed');
$s = file_get_contents(U . '/renamed');
rename(U . '/renamed', F);
return $s;
