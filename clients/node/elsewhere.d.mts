// elsewhere.d.mts - the types of elsewhere.mjs.

/** Of a worker. lease: how long a turn may take before another worker gets it; turns: how many are claimed at once; places: steps at
 *  once, 0: other workers run the steps; main: the file whose imports are the build, else the one that Node runs. */
export interface WorkOptions {
    name?: string;
    lease?: string;
    turns?: number;
    places?: number;
    wait?: string;
    main?: string;
}

/** Serves the workflows of this program to a server elsewhere: claims turns and answers them, and runs the steps. */
export class CodeWorker {
    /** pawl: a Pawl of pawl-client. */
    constructor(pawl: object, options?: WorkOptions);
    stop(): void;
    /** Work until stop(), SIGTERM or SIGINT. Throws what the server rejects the workflows with. */
    run(): Promise<void>;
}

/** Serve the workflows of this program to the server at `url`, until SIGTERM or SIGINT. */
export function work(url?: string, options?: WorkOptions & { token?: string | undefined; store?: string | undefined }): Promise<void>;
