<?php
/* A file whose code waits: once before and once after its definitions for the including file. */

pause();
$inside = "included by $mark";
pause();

return strrev($mark);
